// B: samples of the batch

#include "runner/train/data/referenced_data.h"

#include <ATen/ops/empty.h>

#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

at::Tensor values_of(const std::vector<float>& all, std::span<const std::int64_t> indices) {
  at::Tensor values_B = at::empty({static_cast<std::int64_t>(indices.size())}, at::kFloat);
  auto* to = values_B.mutable_data_ptr<float>();
  for (const std::int64_t index : indices) *to++ = all[static_cast<std::size_t>(index)];
  return values_B;
}

}  // namespace

ReferencedData::ReferencedData(std::shared_ptr<components::data::Dataset> pairs)
    : WrappedData(std::move(pairs)), signature_(set().signature()) {
  for (const char* name : {components::kReferenceChosen, components::kReferenceRejected}) {
    signature_.tensors.push_back({name, components::Dtype::kFloat32, {components::kBatch}, false});
  }
}

void ReferencedData::set_figures(ReferenceFigures figures) {
  const auto samples = static_cast<std::size_t>(size());
  RUNNER_ASSERT(figures.chosen.size() == samples && figures.rejected.size() == samples, "there is one for each sample");
  figures_ = std::move(figures);
}

void ReferencedData::fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const {
  RUNNER_ASSERT(!figures_.chosen.empty(), "the reference is computed before the first step");
  set().fetch(indices, batch);
  batch.set(components::kReferenceChosen, values_of(figures_.chosen, indices));
  batch.set(components::kReferenceRejected, values_of(figures_.rejected, indices));
}

std::int64_t ReferencedData::memory_bytes() const {
  return set().memory_bytes() + size() * 2 * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace runner::train
