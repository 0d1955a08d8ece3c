#include "components/kernels/product.h"

#include <atomic>

#include "components/kernels/processor.h"

namespace components::kernels {
namespace {

std::atomic<bool> is_hidden{false};

}  // namespace

template <>
const ProductKernel<float>* product_kernel<float>() {
#if defined(__x86_64__)
  static const bool wanted = processor().avx512 && !processor().intel;
  return wanted && !is_hidden ? &product_avx512 : nullptr;
#else
  return nullptr;
#endif
}

template <>
const ProductKernel<Bf16>* product_kernel<Bf16>() {
#if defined(__x86_64__)
  static const bool wanted = processor().multiplies_bf16_faster() && !processor().amx_bf16;
  return wanted && !is_hidden ? &product_bf16_avx512 : nullptr;
#else
  return nullptr;
#endif
}

void pretend_no_product_kernel(bool none) { is_hidden = none; }

}  // namespace components::kernels
