#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "components/kernels/transformer_levels.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define ROUX_LANES 16
#define ROUX_LEVEL avx512
#define ROUX_LEVEL_TABLE transformer_avx512
#include "components/kernels/transformer.inl"
