#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace runner::distributed {

/// The place of each gradient in the buckets of the exchange: float32 memory, assigned in the given order of parameters
/// by size only. A gradient larger than a bucket gets its own.
struct BucketAssignment {
  struct Part {
    std::size_t bucket = 0;
    std::int64_t begin = 0;  ///< floats before it
  };

  BucketAssignment(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);

  std::vector<Part> parts;           ///< by parameter
  std::vector<std::int64_t> floats;  ///< by bucket; there is at least one
};

/// View of a parameter's gradient in a bucket, in its shape.
at::Tensor view_of(const at::Tensor& flat, const BucketAssignment::Part& part, const at::Tensor& parameter);

}  // namespace runner::distributed
