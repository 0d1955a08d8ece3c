#include <algorithm>
#include <cstring>

#include "components/kernels/product.h"

// After the headers: what they define is shared with code for every processor.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#endif
#define ROUX_LEVEL avx512
#include "components/kernels/packs.inl"

namespace components::kernels::avx512 {
namespace {

constexpr std::int64_t kWords = 256, kColumns = 512;

ROUX_INLINE Floats spread(float word) { return all(word); }
ROUX_INLINE Floats multiply_add(Floats sums, Floats a, Floats b) { return sums + a * b; }

}  // namespace
}  // namespace components::kernels::avx512

#include "components/kernels/product.inl"

namespace components::kernels {

const ProductKernel<float> product_avx512 = {
    avx512::kTileRows, avx512::kTileColumns, avx512::kScratch,           0, &avx512::multiply<float, float>,
    nullptr,           &avx512::pack<float>, &avx512::packed_size<float>};

}  // namespace components::kernels
