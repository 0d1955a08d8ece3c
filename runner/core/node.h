#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/location.h"

namespace runner::core {

/// What a step of a value's history says about the value. Rules ask for this, never for the step's text.
enum class Origin {
  kPassedOn,     ///< taken over as it was written: a file that is extended, an anchor, a variable, another name
  kFlagFile,     ///< from a file of `--set-file`
  kEnvironment,  ///< `of` is the reference, `${env:NAME}`
  kDefault,      ///< of a schema, or of the program that wrote a configuration
  kComputed,     ///< left open, to be computed from the section `of`
  kSettled,      ///< computed from other values, from data or from a configuration
  kAutomatic,    ///< chosen for the word `auto`
  kSecret,       ///< shown as its reference, never as it is
  kRemote,       ///< a path on this machine of what has the name `of` on the Hub or the Web
  kAdapter,      ///< read from the folder of an adapter
  kRefused,      ///< an error was reported: a null in its place, which no rule reports as missing
};

/// A step of a value's history.
struct HistoryStep {
  HistoryStep(const char* shown) : HistoryStep(std::string(shown)) {}  // NOLINT(google-explicit-constructor)
  HistoryStep(std::string shown, Origin step_origin = Origin::kPassedOn,
              std::string of_what = "");  // NOLINT(*explicit*)

  std::string text;  ///< for people: "extends recipes/base.yaml", "default of optimizer/adamw"
  Origin origin;
  std::string of;

  bool operator==(const HistoryStep&) const = default;
};

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
  /// The null that takes the place of a refused value.
  static Node refused(Location location = {});
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

  /// How the value came to be, outermost first, in addition to its location. `explain` shows it.
  const std::vector<HistoryStep>& history() const { return history_; }
  void add_history(HistoryStep step) { history_.push_back(std::move(step)); }
  void add_history(const std::vector<HistoryStep>& steps) {
    history_.insert(history_.end(), steps.begin(), steps.end());
  }
  void set_history(std::vector<HistoryStep> steps) { history_ = std::move(steps); }
  /// The first step of this origin; null when there is none.
  const HistoryStep* find_step(Origin origin) const;
  bool has_origin(Origin origin) const { return find_step(origin) != nullptr; }
  bool is_refused() const { return is_null() && has_origin(Origin::kRefused); }

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
  std::vector<HistoryStep> history_;
};

struct Node::Entry {
  std::string key;
  Location key_location;
  Node value;
};

/// JSON text of the tree, one line when `indent` is negative. Non-finite numbers are written as strings ("nan", "inf").
std::string to_json(const Node& node, int indent = 2);

/// YAML text of the tree in block style, readable back to the same values.
std::string to_yaml(const Node& node);

}  // namespace runner::core
