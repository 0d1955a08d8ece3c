#include "runner/checkpoint/base_weights.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "components/block/quantized.h"
#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/tensor_set.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;
using artifact::BaseRecord;

std::shared_ptr<const BaseWeights> weights_of(std::optional<BaseRecord> record) {
  return record ? std::make_shared<const BaseWeights>(std::move(*record)) : nullptr;
}

}  // namespace

BaseWeights::BaseWeights(BaseRecord record) : record_(std::move(record)) {
  std::sort(record_.tensors.begin(), record_.tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

std::vector<SourceTensor> BaseWeights::fills() const {
  std::vector<SourceTensor> fills;
  for (const BaseRecord::Tensor& tensor : record_.tensors) {
    fills.push_back({tensor.name, tensor.from, tensor.transposed, tensor.dtype});
    fills.back().beside = tensor.beside;
  }
  return fills;
}

bool BaseWeights::holds(const std::string& name) const {
  const auto at =
      std::lower_bound(record_.tensors.begin(), record_.tensors.end(), name,
                       [](const BaseRecord::Tensor& tensor, const std::string& key) { return tensor.name < key; });
  return at != record_.tensors.end() && at->name == name;
}

const std::string& BaseWeights::checksum() const {
  if (record_.checksum.empty()) {
    record_.checksum = artifact::checksum_of(*artifact::open_tensors(record_.source).value(), record_.tensors);
  }
  return record_.checksum;
}

core::Node BaseWeights::to_node() const {
  checksum();
  return artifact::to_node(record_);
}

std::shared_ptr<const BaseWeights> BaseWeights::of_trainer(const core::Node& trainer, const std::string& path) {
  return weights_of(artifact::base_of_trainer(trainer, path));
}

std::shared_ptr<const BaseWeights> BaseWeights::of_checkpoint(const std::string& folder) {
  return weights_of(artifact::base_of_checkpoint(folder));
}

void BaseWeights::load_into(const components::model::Model& model, const std::string& elsewhere,
                            const WeightAccess& access) const {
  InitWeights weights;
  weights.source = artifact::find_base(record_, elsewhere);
  weights.fills = fills();
  load_init_weights(weights, model, access);
}

std::set<std::string> bf16_in_source(const std::vector<SourceTensor>& fills, const components::model::Model& model) {
  std::set<std::string> frozen, names;
  bool has_adapters = false;
  for (const auto& block : model.blocks()) {
    for (const components::part::NamedLinear& named : block->linears()) {
      has_adapters = has_adapters || !named.linear->terms().empty();
      if (named.linear->product().is_quantized()) continue;
      if (!named.linear->product().parameter().requires_grad()) frozen.insert(named.name + ".weight");
    }
  }
  if (!has_adapters) return {};
  for (const SourceTensor& fill : fills) {
    if (fill.dtype == "BF16" && fill.left_out.empty() && frozen.contains(fill.name)) names.insert(fill.name);
  }
  return names;
}

std::shared_ptr<const BaseWeights> base_of(const InitWeights& init, const components::model::Model& model) {
  std::unordered_set<std::string> frozen, quantized;
  bool has_adapters = false;
  for (const components::NamedTensor& parameter : model.parameters()) {
    has_adapters = has_adapters || components::part::is_of_term(parameter.name);
    if (!parameter.tensor.requires_grad()) frozen.insert(parameter.name);
  }
  for (const auto& weight : components::block::quantized_weights(model.blocks())) quantized.insert(weight.name);
  frozen.insert(quantized.begin(), quantized.end());
  if (!has_adapters) return nullptr;
  // A run's checkpoint may be removed as newer ones are made: what comes from one is held.
  if (!init.checkpoint.empty() && init.base == nullptr) return nullptr;
  BaseRecord record;
  std::error_code failed;
  const fs::path absolute = fs::absolute(init.source, failed);
  record.source = init.base != nullptr ? init.base->source()
                  : failed             ? init.source
                                       : absolute.lexically_normal().string();
  for (const SourceTensor& fill : init.base != nullptr ? init.base->fills() : init.fills) {
    // A tied one appears twice.
    if (!fill.left_out.empty() || fill.rows_kept || frozen.erase(fill.name) == 0) continue;
    record.tensors.push_back(
        {fill.name, fill.from, fill.transposed, fill.dtype, fill.beside, quantized.contains(fill.name)});
  }
  return record.tensors.empty() ? nullptr : std::make_shared<const BaseWeights>(std::move(record));
}

}  // namespace runner::checkpoint
