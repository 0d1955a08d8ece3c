#pragma once

/// A pruner of a sweep.

#include "components/pruner/pruner.h"
