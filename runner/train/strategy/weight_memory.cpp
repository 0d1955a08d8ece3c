#include "runner/train/strategy/weight_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace runner::train {

void WeightMemory::give(const at::Tensor& parameter, std::size_t bytes) {
  const c10::Storage& storage = parameter.storage();
  if (parameter.is_meta() || bytes == 0 || storage.nbytes() != 0) return;
  std::vector<c10::DataPtr>& ready = free_[bytes];
  if (ready.empty()) {
    const auto elements = static_cast<std::int64_t>(bytes / parameter.element_size());
    const at::Tensor fresh = at::empty({elements}, parameter.options().requires_grad(false));
    ready.push_back(fresh.storage().set_data_ptr(c10::DataPtr(nullptr, parameter.device())));
  }
  storage.set_data_ptr_noswap(std::move(ready.back()));
  ready.pop_back();
  storage.set_nbytes(bytes);
}

void WeightMemory::take(const at::Tensor& parameter) {
  const c10::Storage& storage = parameter.storage();
  if (parameter.is_meta() || storage.nbytes() == 0) return;
  free_[storage.nbytes()].push_back(storage.set_data_ptr(c10::DataPtr(nullptr, parameter.device())));
  storage.set_nbytes(0);
}

at::Tensor WeightMemory::lend(std::int64_t elements, std::size_t bytes, const at::TensorOptions& options) {
  at::Tensor lent = at::empty({0}, options);
  give(lent, bytes);
  return lent.set_(lent.storage(), 0, {elements}, {1});
}

}  // namespace runner::train
