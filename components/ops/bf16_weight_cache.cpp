#include "components/ops/bf16_weight_cache.h"

#include <ATen/core/Tensor.h>

#include "components/ops/torch_bridge.h"

namespace components {

Bf16WeightCache::Bf16WeightCache() : copy_(std::make_unique<at::Tensor>()) {}
Bf16WeightCache::~Bf16WeightCache() = default;

at::Tensor Bf16WeightCache::in_bf16(const at::Tensor& weight) {
  const void* address = weight.const_data_ptr();
  const auto version = static_cast<std::uint32_t>(weight._version());
  if (copy_->defined() && address == address_ && version == version_) return *copy_;
  if (copy_->defined() && copy_->use_count() == 1 && copy_->sizes() == weight.sizes()) {
    kernels::lower_into(*copy_, weight);
  } else {
    *copy_ = kernels::lowered<kernels::Bf16>(weight);
  }
  address_ = address;
  version_ = version;
  return *copy_;
}

}  // namespace components
