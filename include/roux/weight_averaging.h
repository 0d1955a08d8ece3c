#pragma once

/// An average of the weights.

#include "components/weight_averaging/weight_averaging.h"
