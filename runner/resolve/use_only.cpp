#include "runner/resolve/use_only.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "runner/resolve/pretrained_model.h"

namespace runner::resolve {
namespace {

using core::Node;

bool lacks(const Node& block, const std::string& key) {
  const Node* value = block.find(key);
  return value == nullptr || value->is_null();
}

Node mapping_of(std::initializer_list<std::pair<const char*, Node>> entries) {
  Node node = Node::mapping();
  for (const auto& [key, value] : entries) node.set(key, value);
  return node;
}

/// The set whose samples the model gets, else the first one; null: there is none.
const Node* applied_set(const Node& data, const std::string& name) {
  const Node* named = data.find(name);
  if (named != nullptr) return named;
  return data.entries().empty() ? nullptr : &data.entries().front().value;
}

Node without_sets(const recipe::Use& use) {
  if (!use.new_rows.empty()) {
    Node rows = mapping_of({{"type", Node::string("jsonl")}, {"path", Node::string(use.new_rows)}});
    rows.add_history({"the rows to predict", core::Origin::kSettled});
    return rows;
  }
  Node none = mapping_of(
      {{"type", Node::string("synthetic")}, {"task", Node::string("regression")}, {"num_samples", Node::integer(1)}});
  none.add_history({"no samples are read", core::Origin::kSettled});
  return none;
}

void complete_data(Node& recipe, const recipe::Use& use) {
  if (lacks(recipe, "data")) recipe.set("data", Node::mapping());
  Node& data = *recipe.find("data");
  if (!data.is_mapping() || !lacks(data, "train")) return;
  const Node* set = applied_set(data, use.data_set);
  data.set("train", set != nullptr ? Node(*set) : without_sets(use));
  if (set != nullptr) return;
  const Node* source = source_of(recipe);
  if (use.new_rows.empty() && source != nullptr && lacks(recipe, "tokenizer"))
    recipe.set("tokenizer", mapping_of({{"type", Node::string("file")}, {"path", *source}}));
}

}  // namespace

void complete_use(Node& recipe, const recipe::Use& use) {
  if (!recipe.is_mapping()) return;
  if (lacks(recipe, "optimizer"))
    recipe.set("optimizer", mapping_of({{"type", Node::string("sgd")}, {"lr", Node::floating(1.0)}}));
  if (lacks(recipe, "training"))
    recipe.set("training", mapping_of({{"max_steps", Node::integer(1)}, {"micro_batch_size", Node::integer(8)}}));
  complete_data(recipe, use);
}

}  // namespace runner::resolve
