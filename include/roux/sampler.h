#pragma once

/// A sampler of a sweep.

#include "components/sampler/math/grid_points.h"
#include "components/sampler/sampler.h"
