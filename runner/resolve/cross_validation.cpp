#include "runner/resolve/cross_validation.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace runner::resolve {
namespace {

using core::Node;

bool is_fold(const Node& set) {
  const Node* type = set.is_mapping() ? set.find("type") : nullptr;
  return type != nullptr && type->is_string() && type->as_string() == "fold";
}

/// A whole number from `least` on, below `end`; else the default: a wrong one is told where it is written, and not
/// again in both sets.
Node number_of(const Node& section, const char* key, std::int64_t least, std::int64_t end, std::int64_t otherwise) {
  const Node* value = section.find(key);
  const bool fits =
      value != nullptr && value->is_integer() && value->as_integer() >= least && value->as_integer() < end;
  return fits ? *value : Node::integer(otherwise, section.location());
}

Node fold_of(Node set, const Node& section) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Node fold = Node::mapping(set.location());
  fold.set("type", Node::string("fold", set.location()));
  const Node folds = number_of(section, "folds", 2, kMost, 5);
  fold.set("folds", folds);
  fold.set("fold", number_of(section, "fold", 0, folds.as_integer(), 0));
  fold.set("seed", number_of(section, "seed", 0, kMost, 0));
  const Node* stratified = section.find("stratified");
  if (stratified != nullptr && stratified->is_bool()) fold.set("stratified", *stratified);
  // Transforms are of a whole set.
  if (Node* transforms = set.is_mapping() ? set.find("transforms") : nullptr) {
    fold.set("transforms", std::move(*transforms));
    set.erase("transforms");
  }
  fold.set("of", std::move(set));
  fold.add_history("cross_validation");
  return fold;
}

}  // namespace

void complete_folds(const Node* section, Node* data, core::Diagnostics& diagnostics) {
  if (section == nullptr || !section->is_mapping() || data == nullptr || !data->is_mapping()) return;
  Node* train = data->find("train");
  if (train == nullptr || is_fold(*train)) return;
  Node fold = fold_of(std::move(*train), *section);
  if (const Node* val = data->find("val")) {
    diagnostics.error(val->location(), "cross_validation holds data.val out of data.train, and there is a data.val",
                      "remove one of them, or give the set another name");
  } else {
    data->set("val", fold);
  }
  data->set("train", std::move(fold));
}

}  // namespace runner::resolve
