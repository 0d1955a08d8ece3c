#include "components/kernels/product.h"

#include <atomic>

namespace components::kernels {
namespace {

std::atomic<bool> is_hidden{false};

}  // namespace

const ProductKernel* product_kernel() {
#if defined(__x86_64__)
  static const bool wanted = __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
  return wanted && !is_hidden ? &product_avx512 : nullptr;
#else
  return nullptr;
#endif
}

void pretend_no_product_kernel(bool none) { is_hidden = none; }

}  // namespace components::kernels
