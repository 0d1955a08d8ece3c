#include "runner/train/data/batch_dispatch.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <string>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

using components::TensorMap;
using Named = c10::Dict<std::string, at::Tensor>;

/// The batches of the other ranks, serialized.
std::string written(std::span<const int> owners, const std::vector<TensorMap>& batches) {
  c10::List<Named> all;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == 0) continue;
    Named named;
    for (const auto& item : batches[i].items()) named.insert(item.name, item.tensor.contiguous());
    all.push_back(std::move(named));
  }
  const std::vector<char> bytes = torch::jit::pickle_save(all);
  return {bytes.begin(), bytes.end()};
}

/// Those of one rank.
std::vector<TensorMap> read(const std::string& text, std::span<const int> owners, int rank) {
  const at::IValue all = torch::jit::pickle_load({text.begin(), text.end()});
  std::vector<TensorMap> mine;
  std::size_t next = 0;
  for (const int owner : owners) {
    if (owner == 0) continue;
    const at::IValue named = all.toList().get(next++);
    if (owner != rank) continue;
    TensorMap& batch = mine.emplace_back();
    for (const auto& item : named.toGenericDict()) batch.set(item.key().toStringRef(), item.value().toTensor());
  }
  return mine;
}

}  // namespace

void dispatch_batches(distributed::ProcessGroup& ranks, std::span<const int> owners, std::vector<TensorMap>& batches) {
  constexpr const char* kSite = "batches";
  if (ranks.rank() > 0) {
    batches = read(ranks.from_rank_0("", kSite), owners, ranks.rank());
    return;
  }
  ranks.from_rank_0(written(owners, batches), kSite);
  std::vector<TensorMap> mine;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == 0) mine.push_back(std::move(batches[i]));
  }
  batches = std::move(mine);
}

}  // namespace runner::train
