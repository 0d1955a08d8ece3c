#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "runner/core/text/utf8.h"
#include "runner/recipe/read.h"
#include "runner/recipe/source_text.h"

namespace runner::recipe {
namespace {

constexpr int kRepeatsTold = 100;  ///< keys that are given again; one error each, and a file may have millions

using core::Location;
using core::Node;

// nlohmann's reader tells values but not where they stand, so a cursor follows it through the text: it has vouched for
// every token before it calls.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Reader(SourceText& text, const Limits& limits, core::Diagnostics& diagnostics)
      : text_(text), limits_(limits), diagnostics_(diagnostics), cursor_(text.begin()) {}

  bool null() override { return add(Node::null(token())); }
  bool boolean(bool value) override { return add(Node::boolean(value, token())); }
  bool number_integer(std::int64_t value) override { return add_number(Node::integer(value)); }

  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return out_of_range("integer");
    return add_number(Node::integer(static_cast<std::int64_t>(value)));
  }

  bool number_float(double value, const std::string& written) override {
    if (written.find_first_of(".eE") == std::string::npos) return out_of_range("integer");
    const std::string_view digits = std::string_view(written).substr(0, written.find_first_of("eE"));
    if (value == 0 && digits.find_first_of("123456789") != std::string_view::npos) return out_of_range("number");
    return add_number(Node::floating(value));
  }

  bool string(std::string& value) override { return add(Node::string(std::move(value), token())); }
  bool binary(nlohmann::json::binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Node::mapping(token())); }
  bool start_array(std::size_t) override { return open(Node::sequence({}, token())); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& value) override {
    key_location_ = token();
    key_ = std::move(value);
    const auto [first, is_new] = open_.back().lines.try_emplace(key_, key_location_.line);
    if (!is_new && ++repeats_ <= kRepeatsTold) {
      diagnostics_.error(key_location_, "the key " + core::quote(key_) + " appears twice in this object",
                         "the first one is at line " + std::to_string(first->second));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    const std::string_view text = text_.text();
    std::size_t at = std::min(text_.begin() + (position > 0 ? position - 1 : 0), text.size());
    const std::size_t before = at == 0 ? std::string_view::npos : text.find_last_not_of(" \t\r\n", at - 1);
    const bool ended = text.find_first_not_of(" \t\r\n", at) == std::string_view::npos;
    std::string hint;
    if (ended && before != std::string_view::npos) {
      // There is nothing to point at behind the end.
      at = before;
    } else if (before != std::string_view::npos && text[before] == ',' && (text[at] == '}' || text[at] == ']')) {
      hint = "remove the comma before it";
    } else if (text[at] == '/' || text[at] == '#') {
      hint = "remove the comment: JSON has none";
    } else if (text[at] == '\'') {
      hint = "JSON strings use double quotes";
    }
    diagnostics_.error(text_.location(at, at + 1), "invalid JSON: " + plain_words(error.what()), hint);
    return false;
  }

  std::optional<Node> take() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    std::string key;
    Location key_location;
    std::unordered_map<std::string, int> lines;  // of the keys so far
  };

  // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing value - unexpected
  // ']'; expected end of input; last read: '...'" keeps the part that says something.
  static std::string plain_words(std::string what) {
    const std::size_t dash = what.find(" - ");
    if (dash != std::string::npos) what = what.substr(dash + 3);
    const std::size_t last_read = what.find("; last read");
    if (last_read != std::string::npos) what.resize(last_read);
    return core::escape_for_terminal(what);
  }

  Location token() {
    const std::string_view text = text_.text();
    const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n,:", cursor_), text.size());
    std::size_t end = begin + 1;
    if (begin < text.size() && text[begin] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (begin < text.size() && std::string_view("{}[]").find(text[begin]) == std::string_view::npos) {
      end = std::min(text.find_first_of(" \t\r\n,:{}[]", begin), text.size());
    }
    token_ = text.substr(begin, end - begin);
    cursor_ = end;
    return text_.location(begin, end);
  }

  bool out_of_range(const char* kind) {
    const Location location = token();
    diagnostics_.error(
        location, std::string("the ") + kind + " " + std::string(token_.substr(0, 60)) + " does not fit into 64 bits");
    return false;
  }

  bool add_number(Node node) {
    node.set_location(token());
    node.set_written(std::string(token_));
    return add(std::move(node));
  }

  bool add(Node node) {
    if (++nodes_ > limits_.nodes_max) {
      diagnostics_.error(node.location(), "more than " + std::to_string(limits_.nodes_max) + " values in one file");
      return false;
    }
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_sequence()) {
      open_.back().node.items().push_back(std::move(node));
    } else {
      // No search for the key here: `key` has done it.
      open_.back().node.entries().push_back({std::move(key_), key_location_, std::move(node)});
    }
    return true;
  }

  bool open(Node node) {
    if (static_cast<int>(open_.size()) >= limits_.nesting_depth_max) {
      diagnostics_.error(node.location(),
                         "nested more than " + std::to_string(limits_.nesting_depth_max) + " levels deep");
      return false;
    }
    open_.push_back({std::move(node), std::move(key_), key_location_, {}});
    return true;
  }

  bool close() {
    token();
    Open done = std::move(open_.back());
    open_.pop_back();
    key_ = std::move(done.key);
    key_location_ = done.key_location;
    return add(std::move(done.node));
  }

  SourceText& text_;
  const Limits& limits_;
  core::Diagnostics& diagnostics_;
  std::size_t cursor_;
  std::string_view token_;
  std::vector<Open> open_;
  std::string key_;
  Location key_location_;
  std::int64_t nodes_ = 0;
  int repeats_ = 0;
  std::optional<Node> root_;
};

}  // namespace

std::optional<Node> read_json(std::shared_ptr<const core::Source> source, const Limits& limits,
                              core::Diagnostics& diagnostics) {
  SourceText text(source);
  if (!check_text(text, limits, diagnostics)) return std::nullopt;
  if (text.text().find_first_not_of(" \t\r\n", text.begin()) == std::string_view::npos) {
    diagnostics.error(Location{source, 0, 0, 1}, "the file is empty");
    return std::nullopt;
  }
  const int errors_before = diagnostics.error_count();
  Reader reader(text, limits, diagnostics);
  const std::string_view body = text.text().substr(text.begin());
  if (!nlohmann::json::sax_parse(body.begin(), body.end(), &reader)) return std::nullopt;
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return reader.take();
}

}  // namespace runner::recipe
