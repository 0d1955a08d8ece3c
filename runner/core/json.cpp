#include "runner/core/json.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runner/core/json_entries.h"
#include "runner/core/json_problem.h"

namespace runner::core {
namespace {

using Json = nlohmann::json;

/// Builds the tree from the parser's events, so that depth and size are refused before they cost anything.
class Builder final : public Json::json_sax_t {
 public:
  Builder(std::string_view text, const JsonLimits& limits, std::string_view within = "",
          const TakeEntry* take = nullptr)
      : text_(text), limits_(limits), within_(within), take_(take) {}

  bool null() override { return add(Node::null()); }
  bool boolean(bool value) override { return add(Node::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(Node::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse("the integer " + std::to_string(value) + " does not fit into 64 bits");
    }
    return add(Node::integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // The parser reads an integer of any length as a float; an error is better than a silent loss of precision.
    if (text.find_first_of(".eE") == std::string::npos)
      return refuse("the integer " + text + " does not fit into 64 bits");
    Node node = Node::floating(value);
    node.set_written(text);
    return add(std::move(node));
  }
  bool string(string_t& value) override { return add(Node::string(std::move(value))); }
  bool binary(binary_t&) override { return refuse("binary values are not valid JSON"); }
  bool start_object(std::size_t) override { return open(Node::mapping()); }
  bool start_array(std::size_t) override { return open(Node::sequence()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!open_.back().keys.insert(value).second) return refuse("the key \"" + value + "\" appears twice");
    open_.back().key = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return refuse("it " + json_problem(text_, position));
  }

  Node take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    Node node;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
    return false;
  }

  bool open(Node node) {
    if (static_cast<int>(open_.size()) >= limits_.depth_max) {
      return refuse("it is nested deeper than " + std::to_string(limits_.depth_max) + " levels");
    }
    open_.push_back({std::move(node), {}, {}});
    return true;
  }

  bool close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    return add(std::move(node));
  }

  bool add(Node node) {
    if (++values_ > limits_.values_max) {
      return refuse("it holds more than " + std::to_string(limits_.values_max) + " values");
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return true;
    }
    Level& level = open_.back();
    if (level.node.is_sequence()) {
      level.node.items().push_back(std::move(node));
    } else if (gives_entries()) {
      values_ = 0;
      (*take_)(level.key, std::move(node));
    } else {
      // Not set(): that searches all keys, and a model may have thousands of tensors.
      level.node.entries().push_back({std::move(level.key), {}, std::move(node)});
    }
    return true;
  }

  /// Whether the innermost object is the one whose entries are taken.
  bool gives_entries() const {
    if (take_ == nullptr || open_.size() != (within_.empty() ? 1 : 2)) return false;
    return within_.empty() || (open_.front().node.is_mapping() && open_.front().key == within_);
  }

  const std::string_view text_;
  const JsonLimits& limits_;
  const std::string_view within_;
  const TakeEntry* const take_;
  Node root_;
  std::vector<Level> open_;
  std::int64_t values_ = 0;
  std::string problem_;
};

}  // namespace

Result<Node> parse_json(std::string_view text, const JsonLimits& limits) {
  Builder builder(text, limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return Failure{builder.problem(), ""};
  return builder.take();
}

Result<Node> parse_json_entries(std::string_view text, std::string_view within, const JsonLimits& limits,
                                const TakeEntry& take) {
  Builder builder(text, limits, within, &take);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) return Failure{builder.problem(), ""};
  return builder.take();
}

}  // namespace runner::core
