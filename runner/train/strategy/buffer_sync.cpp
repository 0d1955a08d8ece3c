#include "runner/train/strategy/buffer_sync.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include "components/model/model.h"
#include "runner/distributed/process_group.h"

namespace runner::train {

BufferSync::BufferSync(components::model::Model& model, distributed::ProcessGroup& ranks, Of of)
    : model_(model), ranks_(ranks), of_(of), buffers_(model.buffers()) {}

void BufferSync::clear() {
  const at::NoGradGuard no_grad;
  for (const auto& buffer : buffers_) at::Tensor(buffer.tensor).zero_();
}

// Rank 0 contributes the values from before the step.
void BufferSync::begin() {
  if (of_ == Of::kAll && ranks_.rank() > 0) clear();
}

void BufferSync::skip_batches(std::int64_t batches) {
  const at::NoGradGuard no_grad;
  if (of_ == Of::kAll && batches > 0) model_.decay_running_stats(batches);
}

void BufferSync::finish() {
  const at::NoGradGuard no_grad;
  if (of_ == Of::kFirst && ranks_.rank() > 0) clear();
  std::vector<at::Tensor> parts;
  for (const auto& buffer : buffers_) parts.push_back(buffer.tensor.reshape({-1}));
  const at::Tensor flat = at::cat(parts);
  ranks_.begin_all_reduce(flat, "running statistics")->wait();
  std::int64_t begin = 0;
  for (const auto& buffer : buffers_) {
    const std::int64_t count = buffer.tensor.numel();
    at::Tensor(buffer.tensor).copy_(flat.narrow(0, begin, count).reshape(buffer.tensor.sizes()));
    begin += count;
  }
}

}  // namespace runner::train
