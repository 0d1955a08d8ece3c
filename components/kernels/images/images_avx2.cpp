#include <cmath>
#include <cstring>
#include <limits>

#include "components/kernels/images/images_levels.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif
#define ROUX_LEVEL avx2
#define ROUX_LEVEL_TABLE images_avx2
#include "components/kernels/images/images.inl"
