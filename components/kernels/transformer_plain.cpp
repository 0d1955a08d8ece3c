#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "components/kernels/transformer_levels.h"

#define ROUX_LANES 4
#define ROUX_LEVEL plain
#define ROUX_LEVEL_TABLE transformer_plain
#include "components/kernels/transformer.inl"
