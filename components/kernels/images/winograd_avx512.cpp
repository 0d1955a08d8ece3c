#include <cstring>

#include "components/kernels/images/winograd.h"
#include "components/kernels/transformer.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define ROUX_LEVEL avx512
#define ROUX_NUMBER float
#define ROUX_LEVEL_TABLE winograd_avx512
#include "components/kernels/packs.inl"

namespace components::kernels {
namespace avx512 {
namespace {

ROUX_INLINE Floats add_product(Floats sum, float a, Floats b) { return sum + a * b; }
ROUX_INLINE void put(float* to, Floats x) { store(to, x); }
ROUX_INLINE Floats words(Floats first, Floats) { return first; }

}  // namespace
}  // namespace avx512
}  // namespace components::kernels

#include "components/kernels/images/winograd.inl"
