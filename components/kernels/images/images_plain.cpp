#include <cmath>
#include <cstring>
#include <limits>

#include "components/kernels/images/images_levels.h"

#define ROUX_LEVEL plain
#define ROUX_LEVEL_TABLE images_plain
#include "components/kernels/images/images.inl"
