#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "components/kernels/transformer_levels.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif
#define ROUX_LANES 8
#define ROUX_LEVEL avx2
#define ROUX_LEVEL_TABLE transformer_avx2
#include "components/kernels/transformer.inl"
