#include "components/kernels/product.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace components::kernels {
namespace {

std::atomic<bool> is_hidden{false};

#if defined(__x86_64__)
/// GCC 12 does not know the word for it.
bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1U << 22)) != 0;
}
#endif

}  // namespace

template <>
const ProductKernel<float>* product_kernel<float>() {
#if defined(__x86_64__)
  static const bool wanted = __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
  return wanted && !is_hidden ? &product_avx512 : nullptr;
#else
  return nullptr;
#endif
}

template <>
const ProductKernel<Bf16>* product_kernel<Bf16>() {
#if defined(__x86_64__)
  static const bool wanted = __builtin_cpu_supports("avx512bf16") && !has_amx_bf16();
  return wanted && !is_hidden ? &product_bf16_avx512 : nullptr;
#else
  return nullptr;
#endif
}

void pretend_no_product_kernel(bool none) { is_hidden = none; }

}  // namespace components::kernels
