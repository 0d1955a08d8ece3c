#include "runner/core/platform/gpu_kernels.h"

#include <catch2/catch.hpp>
#include <string>

using runner::core::lack_of_kernels;

TEST_CASE("a GPU needs kernels of its major version, or text that the driver compiles", "[core][gpu]") {
  // at::show_config() of LibTorch 2.11 for CUDA 13.
  const std::string flags =
      "-gencode;arch=compute_75,code=sm_75;-gencode;arch=compute_80,code=sm_80;-gencode;arch=compute_86,code=sm_86;"
      "-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_100,code=sm_100;-gencode;arch=compute_120,code=sm_120";
  CHECK(lack_of_kernels(flags, 6, 1) ==
        "its compute capability is 6.1, and LibTorch has kernels for 7.5, 8.0, 8.6, 9.0, 10.0, 12.0");
  CHECK_FALSE(lack_of_kernels(flags, 7, 0).empty());
  CHECK_FALSE(lack_of_kernels(flags, 11, 0).empty());
  for (const auto& [major, minor] : {std::pair(7, 5), {8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 3}, {12, 1}}) {
    CHECK(lack_of_kernels(flags, major, minor).empty());
  }
  const std::string text = "-gencode;arch=compute_90,code=[sm_90,compute_90];-gencode;arch=compute_100a,code=sm_100a";
  CHECK(lack_of_kernels(text, 12, 0).empty());
  CHECK_FALSE(lack_of_kernels(text, 8, 9).empty());
  CHECK_FALSE(lack_of_kernels("-gencode;arch=compute_100a,code=sm_100a", 10, 3).empty());
  CHECK(lack_of_kernels("", 6, 1).empty());
}
