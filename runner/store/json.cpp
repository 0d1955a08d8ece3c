#include "runner/store/json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace runner::store {
namespace {

using core::Node;

/// Builds the tree from the parser's events: no second tree beside ours.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return put(Node::null()); }
  bool boolean(bool value) override { return put(Node::boolean(value)); }
  bool number_integer(std::int64_t value) override { return put(Node::integer(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return put(Node::floating(static_cast<double>(value)));
    }
    return put(Node::integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string& text) override {
    Node node = Node::floating(value);
    node.set_written(text);
    return put(std::move(node));
  }
  bool string(std::string& value) override { return put(Node::string(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return push(Node::mapping()); }
  bool start_array(std::size_t) override { return push(Node::sequence()); }
  bool end_object() override { return pop(); }
  bool end_array() override { return pop(); }
  bool key(std::string& value) override {
    open_.back().key = std::move(value);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  Node take() { return std::move(root_); }

 private:
  struct Level {
    Node node;
    std::string key;
  };
  static constexpr std::size_t kDepthMax = 256;

  bool push(Node node) {
    if (open_.size() >= kDepthMax) return false;
    open_.push_back({std::move(node), ""});
    return true;
  }
  bool pop() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    return put(std::move(node));
  }
  bool put(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_mapping()) {
      open_.back().node.set(open_.back().key, std::move(node));
    } else {
      open_.back().node.items().push_back(std::move(node));
    }
    return true;
  }

  Node root_;
  std::vector<Level> open_;
};

}  // namespace

std::optional<Node> parse_json(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return builder.take();
}

}  // namespace runner::store
