#include "components/tensor/buffer_snapshot.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstddef>
#include <utility>

namespace components {

BufferSnapshot::BufferSnapshot(NamedTensors buffers) : buffers_(std::move(buffers)) {
  for (const NamedTensor& buffer : buffers_) values_.push_back(buffer.tensor.detach().clone());
}

void BufferSnapshot::restore() const {
  // Not a change that autograd has to know of.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (std::size_t i = 0; i < values_.size(); ++i) buffers_[i].tensor.copy_(values_[i]);
}

}  // namespace components
