// What counts as a lack of memory, so that a smaller micro-batch is tried.

#include "runner/train/experiment/out_of_memory.h"

#include <c10/util/Exception.h>

#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>
#include <string>

namespace runner::train {

TEST_CASE("only what tells of memory makes a batch smaller", "[train][out_of_memory]") {
  struct Case {
    const char* text;
    bool is_out_of_memory_error;
  };
  // Of accelerate.utils.memory.should_reduce_batch_size 1.15, but for oneDNN's and the driver's.
  static constexpr Case cases[] = {
      {"CUDA out of memory. Tried to allocate 2.00 GiB", true},
      {"[enforce fail at alloc_cpu.cpp:114] err == 0. DefaultCPUAllocator: can't allocate memory: error code 12", true},
      {"CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call", true},
      {"CUDA error: unspecified launch failure", false},
      {"MPS backend out of memory (MPS allocated: 1 GB)", true},
      {"FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size", true},
      {"could not create a memory object: out_of_memory", true},
      {"the word list is out of memory games", false},
      {"cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", false},
      {"", false},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(is_out_of_memory(std::runtime_error(c.text)) == c.is_out_of_memory_error);
    CHECK(is_out_of_memory(c10::Error({__func__, __FILE__, __LINE__}, c.text)) == c.is_out_of_memory_error);
    CHECK_FALSE(is_out_of_memory(std::invalid_argument(c.text)));
  }
}

TEST_CASE("an error of LibTorch or a GPU is one line, with a hint", "[train][out_of_memory]") {
  struct Case {
    const char *text, *message, *hint;
  };
  static constexpr Case cases[] = {
      {"CUDA error: unspecified launch failure\nCUDA kernel errors might be asynchronously reported",
       "CUDA error: unspecified launch failure", "look at `nvidia-smi`"},
      {"CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
       "out of memory: CUDA error: out of memory", "use a smaller model"},
      {"no such operator", "LibTorch: no such operator", ""},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const core::RunError error = as_run_error(c10::Error({__func__, __FILE__, __LINE__}, c.text));
    CHECK(error.what() == std::string(c.message));
    CHECK(error.hint().starts_with(c.hint));
  }
  CHECK(as_run_error(std::bad_alloc()).what() ==
        std::string("out of memory: the system has no more memory for this process"));
}

}  // namespace runner::train
