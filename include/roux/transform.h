#pragma once

/// What changes the samples of a data set while they are read.

#include "components/transform/transform.h"
