#pragma once

#include <string>

namespace components::kernels {

/// What decides which kernels run: the instructions of a processor that the system it runs under saves, too, and its
/// make. All false and 0 on others than x86-64.
struct Processor {
  bool avx2 = false;    ///< AVX2 and FMA
  bool avx512 = false;  ///< AVX-512 F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  bool intel = false;  ///< where MKL takes 512-bit registers
  int model = 0;       ///< Intel's number of the model, within family 6

  /// Whether products of bfloat16 take less time than those of float32, as measured, by model. An instruction alone
  /// does not say so: Intel's server processors from Sapphire Rapids on multiply bfloat16 fast in their AMX units,
  /// which not every virtual machine passes on, and AVX-512 BF16 there has half the units of float32.
  bool multiplies_bf16_faster() const;
};

/// This one, as far as environment variables let kernels use it: ROUX_CPU_CAPABILITY, `default`, `avx2`, `avx512` or
/// `avx512_bf16`, and ROUX_CPU_MAKER, `amd` or `intel`, as if it were of that make. Found once.
const Processor& processor();

/// What is left of a processor under these values, in small letters; all of it under other ones.
Processor limited(Processor found, const std::string& capability, const std::string& maker);

}  // namespace components::kernels
