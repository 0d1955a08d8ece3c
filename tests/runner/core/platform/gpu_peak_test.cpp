#include "runner/core/platform/gpu_peak.h"

#include <catch2/catch.hpp>

using runner::core::gpu_peak;

TEST_CASE("a GPU's peak is found by the name that CUDA has for it", "[core][gpu]") {
  CHECK(gpu_peak("NVIDIA A100-SXM4-80GB").bfloat16 == Approx(312e12));
  CHECK(gpu_peak("NVIDIA A100-SXM4-80GB").tf32 == Approx(156e12));
  CHECK(gpu_peak("NVIDIA A10").bfloat16 == Approx(125e12));
  CHECK(gpu_peak("NVIDIA H100 80GB HBM3").bfloat16 == Approx(989e12));
  CHECK(gpu_peak("NVIDIA H100 PCIe").bfloat16 == Approx(756e12));
  CHECK(gpu_peak("NVIDIA H200").float32 == Approx(67e12));
  CHECK(gpu_peak("NVIDIA L40S").float16 == Approx(362e12));
  CHECK(gpu_peak("NVIDIA GeForce RTX 4090").float16 == Approx(165.2e12));
}

TEST_CASE("a GPU without a format, or without an entry, has no peak", "[core][gpu]") {
  CHECK(gpu_peak("Tesla T4").float16 == Approx(65e12));
  CHECK(gpu_peak("Tesla T4").bfloat16 == 0.0);
  CHECK(gpu_peak("Tesla V100-SXM2-16GB").tf32 == 0.0);
  CHECK(gpu_peak("NVIDIA A10G").float32 == 0.0);
  CHECK(gpu_peak("").float32 == 0.0);
}
