#include "components/tensor/cpu_capability.h"

#include <ATen/Version.h>

#include "components/kernels/processor.h"
#include "components/kernels/product.h"

namespace components {
namespace {

const char* instructions_of_kernels() {
  const kernels::Processor& cpu = kernels::processor();
  if (cpu.amx_bf16) return "AMX_BF16";
  if (cpu.avx512_bf16) return cpu.multiplies_bf16_faster() ? "AVX512_BF16" : "AVX512_BF16 for float32";
  if (cpu.avx512) return "AVX512";
  return cpu.avx2 ? "AVX2" : "DEFAULT";
}

const char* own_products() {
  const bool floats = kernels::product_kernel<float>() != nullptr;
  const bool bf16 = kernels::product_kernel<kernels::Bf16>() != nullptr;
  if (floats && bf16) return ", own products";
  if (floats) return ", own products of float32";
  return bf16 ? ", own products of bfloat16" : "";
}

}  // namespace

std::string cpu_capability() {
  return at::get_cpu_capability() + ", kernels " + instructions_of_kernels() + own_products();
}

}  // namespace components
