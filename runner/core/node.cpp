#include "runner/core/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runner/core/error.h"
#include "runner/core/path.h"
#include "runner/core/text/text.h"
#include "runner/core/text/wording.h"

namespace runner::core {
namespace {

std::string double_text(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string text = number_text(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  const std::size_t zero = text.find("e-0");  // 1e-04 reads better as 1e-4
  if (zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

}  // namespace

HistoryStep::HistoryStep(std::string shown, Origin step_origin, std::string of_what)
    : text(worded(std::move(shown))), origin(step_origin), of(std::move(of_what)) {}

Node Node::null(Location location) {
  Node node;
  node.location_ = std::move(location);
  return node;
}

Node Node::refused(Location location) {
  Node node = null(std::move(location));
  node.add_history({"refused", Origin::kRefused});
  return node;
}

const HistoryStep* Node::find_step(Origin origin) const {
  const auto found =
      std::find_if(history_.begin(), history_.end(), [&](const HistoryStep& step) { return step.origin == origin; });
  return found == history_.end() ? nullptr : &*found;
}

Node Node::boolean(bool value, Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kBool;
  node.bool_ = value;
  return node;
}

Node Node::integer(std::int64_t value, Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kInteger;
  node.integer_ = value;
  return node;
}

Node Node::floating(double value, Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kFloat;
  node.double_ = value;
  return node;
}

Node Node::string(std::string value, Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kString;
  node.string_ = std::move(value);
  return node;
}

Node Node::sequence() { return sequence(std::vector<Node>()); }

Node Node::sequence(std::vector<Node> items, Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kSequence;
  node.items_ = std::move(items);
  return node;
}

Node Node::mapping(Location location) {
  Node node = null(std::move(location));
  node.kind_ = Kind::kMapping;
  return node;
}

bool Node::as_bool() const {
  RUNNER_ASSERT(is_bool(), "validation lets only a boolean through here");
  return bool_;
}

std::int64_t Node::as_integer() const {
  RUNNER_ASSERT(is_integer(), "validation lets only an integer through here");
  return integer_;
}

double Node::as_double() const {
  RUNNER_ASSERT(is_number(), "validation lets only a number through here");
  return kind_ == Kind::kInteger ? static_cast<double>(integer_) : double_;
}

const std::string& Node::as_string() const {
  RUNNER_ASSERT(is_string(), "validation lets only text through here");
  return string_;
}

std::string Node::scalar_text() const {
  switch (kind_) {
    case Kind::kString: return string_;
    case Kind::kNull: return written_.empty() ? "null" : written_;
    case Kind::kBool: return !written_.empty() ? written_ : bool_ ? "true" : "false";
    case Kind::kInteger: return written_.empty() ? std::to_string(integer_) : written_;
    case Kind::kFloat: return written_.empty() ? double_text(double_) : written_;
    case Kind::kSequence:
    case Kind::kMapping: break;
  }
  return to_json(*this, -1);
}

const Node::Entry* Node::find_entry(std::string_view key) const {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  return it == entries_.end() ? nullptr : &*it;
}

const Node* Node::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry ? &entry->value : nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node& Node::set(std::string_view key, Node value, Location key_location) {
  RUNNER_ASSERT(is_mapping(), "keys are set in mappings only");
  if (auto* entry = const_cast<Entry*>(find_entry(key))) {
    entry->value = std::move(value);
    if (key_location.known()) entry->key_location = std::move(key_location);
    return entry->value;
  }
  entries_.push_back({std::string(key), std::move(key_location), std::move(value)});
  return entries_.back().value;
}

bool Node::erase(std::string_view key) {
  return std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; }) > 0;
}

const Node* Node::at_path(std::string_view path) const {
  const auto steps = parse_path(path);
  if (!steps) return nullptr;
  const Node* node = this;
  for (const PathStep& step : steps.value()) {
    if (!step.is_index()) {
      node = node->find(step.key);
    } else {
      const bool inside = static_cast<std::size_t>(step.index) < node->items_.size();
      node = inside ? &node->items_[static_cast<std::size_t>(step.index)] : nullptr;
    }
    if (!node) return nullptr;
  }
  return node;
}

Node* Node::at_path(std::string_view path) { return const_cast<Node*>(std::as_const(*this).at_path(path)); }

bool Node::same_value(const Node& other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::kNull: return true;
    case Kind::kBool: return bool_ == other.bool_;
    case Kind::kInteger: return integer_ == other.integer_;
    case Kind::kFloat: return double_ == other.double_ || (std::isnan(double_) && std::isnan(other.double_));
    case Kind::kString: return string_ == other.string_;
    case Kind::kSequence:
      return std::equal(items_.begin(), items_.end(), other.items_.begin(), other.items_.end(),
                        [](const Node& a, const Node& b) { return a.same_value(b); });
    case Kind::kMapping:
      return entries_.size() == other.entries_.size() &&
             std::all_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
               const Node* match = other.find(entry.key);
               return match && entry.value.same_value(*match);
             });
  }
  return false;
}

}  // namespace runner::core
