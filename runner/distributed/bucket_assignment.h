#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace runner::distributed {

/// Where each gradient lies in the buckets that they are exchanged in: memory of float32, cut from the first parameter
/// given to the last by their sizes alone. One that is larger than a bucket has one of its own.
struct BucketCut {
  struct Part {
    std::size_t bucket = 0;
    std::int64_t begin = 0;  ///< floats before it
  };

  BucketCut(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);

  std::vector<Part> parts;           ///< by parameter
  std::vector<std::int64_t> floats;  ///< by bucket; there is at least one
};

/// The part of a bucket's memory that is a parameter's gradient, in its shape.
at::Tensor view_of(const at::Tensor& flat, const BucketCut::Part& part, const at::Tensor& parameter);

}  // namespace runner::distributed
