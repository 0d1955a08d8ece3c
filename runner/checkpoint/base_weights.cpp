#include "runner/checkpoint/base_weights.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "components/part/linear.h"
#include "components/part/linear_term.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::checkpoint {
namespace {

namespace fs = std::filesystem;
using artifact::TensorBytes;
using core::Node;
using core::RunError;

bool is_there(const std::string& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

std::string checksum_of_fills(const std::string& source, const std::vector<SourceTensor>& fills) {
  const TensorSource reader(source);
  artifact::Checksum sum;
  const auto add = [&sum](const std::string& text) {
    sum.update(text.data(), static_cast<std::int64_t>(text.size()) + 1);  // with its end, which separates
  };
  for (const SourceTensor& fill : fills) {
    add(fill.name);
    for (const std::string& from : fill.from) {
      const TensorBytes* bytes = reader.find(from);
      if (bytes == nullptr) return "";
      add(from);
      add(bytes->dtype);
      for (const std::int64_t size : bytes->shape) add(std::to_string(size));
      sum.update(bytes->data, bytes->bytes);
      reader.let_go(*bytes);
    }
  }
  return sum.text();
}

const Node& field(const Node& node, const char* key, bool (Node::*is)() const, const std::string& path) {
  const Node* found = node.find(key);
  if (found == nullptr || !(found->*is)()) throw RunError(path + ": its base has no " + key);
  return *found;
}

}  // namespace

BaseWeights::BaseWeights(std::string source, std::vector<SourceTensor> fills, std::string checksum)
    : source_(std::move(source)), fills_(std::move(fills)), checksum_(std::move(checksum)) {
  std::sort(fills_.begin(), fills_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

bool BaseWeights::holds(const std::string& name) const {
  const auto at = std::lower_bound(fills_.begin(), fills_.end(), name,
                                   [](const SourceTensor& fill, const std::string& key) { return fill.name < key; });
  return at != fills_.end() && at->name == name;
}

const std::string& BaseWeights::checksum() const {
  if (checksum_.empty()) checksum_ = checksum_of_fills(source_, fills_);
  return checksum_;
}

Node BaseWeights::to_node() const {
  Node tensors = Node::sequence();
  for (const SourceTensor& fill : fills_) {
    Node from = Node::sequence();
    for (const std::string& name : fill.from) from.items().push_back(Node::string(name));
    Node one = Node::mapping();
    one.set("name", Node::string(fill.name));
    one.set("from", std::move(from));
    if (fill.transposed) one.set("transposed", Node::boolean(true));
    if (!fill.dtype.empty()) one.set("dtype", Node::string(fill.dtype));
    tensors.items().push_back(std::move(one));
  }
  Node node = Node::mapping();
  node.set("source", Node::string(source_));
  node.set("checksum", Node::string(checksum()));
  node.set("tensors", std::move(tensors));
  return node;
}

std::shared_ptr<const BaseWeights> BaseWeights::of_trainer(const Node& trainer, const std::string& path) {
  const Node* node = trainer.find("base");
  if (node == nullptr) return nullptr;
  std::vector<SourceTensor> fills;
  for (const Node& one : field(*node, "tensors", &Node::is_sequence, path).items()) {
    SourceTensor& fill = fills.emplace_back();
    fill.name = field(one, "name", &Node::is_string, path).as_string();
    for (const Node& from : field(one, "from", &Node::is_sequence, path).items()) {
      if (!from.is_string()) throw RunError(path + ": its base has a tensor without a name");
      fill.from.push_back(from.as_string());
    }
    const Node* transposed = one.find("transposed");
    fill.transposed = transposed != nullptr && transposed->is_bool() && transposed->as_bool();
    const Node* dtype = one.find("dtype");
    if (dtype != nullptr && dtype->is_string()) fill.dtype = dtype->as_string();
  }
  return std::make_shared<BaseWeights>(field(*node, "source", &Node::is_string, path).as_string(), std::move(fills),
                                       field(*node, "checksum", &Node::is_string, path).as_string());
}

std::shared_ptr<const BaseWeights> BaseWeights::of_checkpoint(const std::string& folder) {
  const std::string path = (fs::path(folder) / artifact::kTrainerFile).string();
  if (!is_there(path)) return nullptr;
  const auto text = core::read_file(path, artifact::kTrainerBytesMax);
  if (!text) throw RunError(text.failure().message, text.failure().hint);
  const auto trainer = core::parse_json(text.value());
  if (!trainer) throw RunError(path + " cannot be read: " + trainer.failure().message);
  return trainer.value().is_mapping() ? of_trainer(trainer.value(), path) : nullptr;
}

void BaseWeights::load_into(const components::model::Model& model, const std::string& elsewhere) const {
  std::vector<std::string> places;
  if (!elsewhere.empty() && is_there(elsewhere)) {
    if (const auto set = artifact::find_tensor_set(elsewhere)) places.push_back(set.value());
  }
  if (is_there(source_)) places.push_back(source_);
  if (places.empty()) {
    throw RunError("the base model of these adapters is not at " + source_,
                   "put it back, or name where it is with --set init_from=FOLDER", core::kExitUsage);
  }
  for (const std::string& place : places) {
    if (checksum_of_fills(place, fills_) != checksum_) continue;
    InitWeights weights;
    weights.source = place;
    weights.fills = fills_;
    return load_init_weights(weights, model);
  }
  throw RunError("the base model in " + places.front() + " has changed since these adapters were saved",
                 "put back the weights that they were trained on, or name where they are with --set init_from=FOLDER",
                 core::kExitUsage);
}

std::set<std::string> bf16_in_source(const std::vector<SourceTensor>& fills, const components::model::Model& model) {
  std::set<std::string> frozen, names;
  bool has_adapters = false;
  for (const auto& block : model.blocks()) {
    for (const components::part::NamedLinear& named : block->linears()) {
      has_adapters = has_adapters || !named.linear->terms().empty();
      if (!named.linear->weight().tensor().requires_grad()) frozen.insert(named.name + ".weight");
    }
  }
  if (!has_adapters) return {};
  for (const SourceTensor& fill : fills) {
    if (fill.dtype == "BF16" && fill.left_out.empty() && frozen.contains(fill.name)) names.insert(fill.name);
  }
  return names;
}

std::shared_ptr<const BaseWeights> base_of(const InitWeights& init, const components::model::Model& model) {
  std::unordered_set<std::string> frozen;
  bool has_adapters = false;
  for (const components::NamedTensor& parameter : model.parameters()) {
    has_adapters = has_adapters || components::part::is_of_term(parameter.name);
    if (!parameter.tensor.requires_grad()) frozen.insert(parameter.name);
  }
  if (!has_adapters) return nullptr;
  // A run's checkpoint may be removed as newer ones are made: what comes from one is held.
  if (!init.checkpoint.empty() && init.base == nullptr) return nullptr;
  std::vector<SourceTensor> fills;
  for (const SourceTensor& fill : init.base != nullptr ? init.base->fills() : init.fills) {
    // A tied one appears twice.
    if (fill.left_out.empty() && !fill.rows_kept && frozen.erase(fill.name) > 0) fills.push_back(fill);
  }
  if (fills.empty()) return nullptr;
  if (init.base != nullptr) return std::make_shared<BaseWeights>(init.base->source(), std::move(fills));
  std::error_code failed;
  const fs::path absolute = fs::absolute(init.source, failed);
  return std::make_shared<BaseWeights>(failed ? init.source : absolute.lexically_normal().string(), std::move(fills));
}

}  // namespace runner::checkpoint
