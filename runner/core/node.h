#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/location.h"

namespace runner::core {

/// A tree with locations: a recipe from its first reading to the resolved form for the engine.
///
/// A value type: copies are deep (locations share their text). Mappings keep the order in which they were written and
/// hold each key once. Numbers follow the YAML 1.2 core schema; `scalar_text()` keeps what the user wrote, for
/// messages.
class Node {
 public:
  enum class Kind { kNull, kBool, kInteger, kFloat, kString, kSequence, kMapping };
  struct Entry;

  Node() = default;
  static Node null(Location location = {});
  static Node boolean(bool value, Location location = {});
  static Node integer(std::int64_t value, Location location = {});
  static Node floating(double value, Location location = {});
  static Node string(std::string value, Location location = {});
  static Node sequence();
  static Node sequence(std::vector<Node> items, Location location = {});
  static Node mapping(Location location = {});

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_integer() const { return kind_ == Kind::kInteger; }
  bool is_number() const { return kind_ == Kind::kInteger || kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kSequence; }
  bool is_mapping() const { return kind_ == Kind::kMapping; }

  /// The value; RUNNER_ASSERT when the kind differs (validation comes first). `as_double` takes integers too.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_double() const;
  const std::string& as_string() const;

  /// A scalar as the user wrote it (`1e-4`, `0x10`, `"text"` without its quotes).
  std::string scalar_text() const;
  void set_written(std::string text) { written_ = std::move(text); }

  const std::vector<Node>& items() const { return items_; }
  std::vector<Node>& items() { return items_; }

  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }
  /// Null when the key is absent or this is not a mapping.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  const Entry* find_entry(std::string_view key) const;
  /// Adds or replaces; a replaced key keeps its position in the order.
  Node& set(std::string_view key, Node value, Location key_location = {});
  bool erase(std::string_view key);

  /// `training.max_steps`, `model.layers[2].out_features`; null when there is no such path. No wildcards.
  const Node* at_path(std::string_view path) const;
  Node* at_path(std::string_view path);

  const Location& location() const { return location_; }
  void set_location(Location location) { location_ = std::move(location); }

  /// The history of the value, outermost first, in addition to its location: "extends recipes/base.yaml", "variable
  /// vars.width", "default of optimizer/adamw", "alias learning_rate", "settled by the batch algebra". For `explain`.
  const std::vector<std::string>& history() const { return history_; }
  void add_history(std::string step) { history_.push_back(std::move(step)); }
  void set_history(std::vector<std::string> steps) { history_ = std::move(steps); }

  /// Same kinds and values; ignores locations and histories.
  bool same_value(const Node& other) const;

 private:
  Kind kind_ = Kind::kNull;
  bool bool_ = false;
  std::int64_t integer_ = 0;
  double double_ = 0.0;
  std::string string_;
  std::string written_;
  std::vector<Node> items_;
  std::vector<Entry> entries_;
  Location location_;
  std::vector<std::string> history_;
};

struct Node::Entry {
  std::string key;
  Location key_location;
  Node value;
};

/// The history of a null that replaces a refused value: it was given, so no rule reports it as missing.
inline constexpr const char* kRefused = "refused";

/// JSON text of the tree, one line when `indent` is negative. Non-finite numbers are written as strings ("nan", "inf").
std::string to_json(const Node& node, int indent = 2);

/// YAML text of the tree in block style, readable back to the same values.
std::string to_yaml(const Node& node);

}  // namespace runner::core
