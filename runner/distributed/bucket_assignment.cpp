#include "runner/distributed/bucket_assignment.h"

#include <ATen/core/Tensor.h>

#include "runner/core/error.h"

namespace runner::distributed {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kAlignedFloats = 16;  // alignment of a gradient, as of its own allocation

}  // namespace

BucketAssignment::BucketAssignment(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes)
    : floats(1, 0) {
  for (const at::Tensor& parameter : parameters) {
    const std::int64_t size = (parameter.numel() + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
    const bool is_begun = !parts.empty() && parts.back().bucket + 1 == floats.size();
    if (is_begun && (floats.back() + size) * kFloatBytes > bucket_bytes) floats.push_back(0);
    parts.push_back({floats.size() - 1, floats.back()});
    floats.back() += size;
  }
}

at::Tensor view_of(const at::Tensor& flat, const BucketAssignment::Part& part, const at::Tensor& parameter) {
  RUNNER_ASSERT(parameter.is_non_overlapping_and_dense(), "a parameter is dense");
  return flat.as_strided(parameter.sizes(), parameter.strides(), part.begin);
}

}  // namespace runner::distributed
