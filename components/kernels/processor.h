#pragma once

namespace components::kernels {

/// What a kernel here may ask of this processor, and of the system it runs under. All false on others than x86-64.
bool has_avx2();    ///< AVX2 and FMA
bool has_avx512();  ///< AVX-512 F, BW, DQ and VL
bool has_avx512_bf16();
bool has_amx_bf16();
/// Where MKL takes 512-bit registers.
bool is_intel();

}  // namespace components::kernels
