#pragma once

/// Marks a function with a loop to vectorize: it is compiled once per instruction set, and the loader picks the best
/// one that the processor supports. The folder is compiled without contraction of
/// products and sums (-ffp-contract=off), and says fma() where PyTorch's kernels do: every level gives the same bits,
/// and they are PyTorch's nearly always.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
#define ROUX_SIMD __attribute__((target_clones("avx512f", "arch=haswell", "default")))
/// For loops over bytes and tables: AVX-512 with its instructions for bytes.
#define ROUX_SIMD_BYTES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ROUX_SIMD
#define ROUX_SIMD_BYTES
#endif
