#pragma once

#include <arrow/memory_pool.h>

#include <cstdint>

#include "runner/core/table/table_file.h"

namespace runner::arrow_files {

/// The memory of one open file: the system's, up to a limit. What a file says of its sizes is not believed.
class LimitedPool {
 public:
  explicit LimitedPool(std::int64_t bytes_max)
      : counted_(arrow::system_memory_pool()), limited_(&counted_, bytes_max) {}
  arrow::MemoryPool* get() { return &limited_; }

 private:
  arrow::ProxyMemoryPool counted_;  // of this file alone
  arrow::CappedMemoryPool limited_;
};

}  // namespace runner::arrow_files
