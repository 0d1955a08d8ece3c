#include "runner/core/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace runner::core {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (text == word) return true;
  }
  return false;
}

bool looks_like_integer(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty()) return false;
  for (const char c : text) {
    if (!is_digit(c)) return false;
  }
  return true;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - from;
  };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const std::size_t before = digits();
  std::size_t after = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    after = digits();
  }
  if (before + after == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

Result<Node> integer_node(std::string_view digits, int base, std::string_view written) {
  if (!digits.empty() && digits[0] == '+') digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range) {
    return Failure{"the integer " + std::string(written) + " does not fit into 64 bits",
                   "write it as 1e30 for a floating-point number, in quotes for text"};
  }
  if (error != std::errc() || end != digits.data() + digits.size()) return Node::string(std::string(written));
  Node node = Node::integer(value);
  node.set_written(std::string(written));
  return node;
}

}  // namespace

Result<Node> resolve_scalar(std::string_view text) {
  const auto written = [&](Node node) {
    node.set_written(std::string(text));
    return Result<Node>(std::move(node));
  };
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return written(Node::null());
  if (is_one_of(text, {"true", "True", "TRUE"})) return written(Node::boolean(true));
  if (is_one_of(text, {"false", "False", "FALSE"})) return written(Node::boolean(false));
  if (looks_like_integer(text)) return integer_node(text, 10, text);
  if (text.size() > 2 && text.substr(0, 2) == "0o") return integer_node(text.substr(2), 8, text);
  if (text.size() > 2 && text.substr(0, 2) == "0x") return integer_node(text.substr(2), 16, text);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (is_one_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return written(Node::floating(kInfinity));
  if (is_one_of(text, {"-.inf", "-.Inf", "-.INF"})) return written(Node::floating(-kInfinity));
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return written(Node::floating(std::nan("")));
  if (looks_like_float(text)) {
    std::string_view digits = text;
    if (digits[0] == '+') digits.remove_prefix(1);
    double value = 0.0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
      const bool is_small = text.find("e-") != text.npos || text.find("E-") != text.npos;
      return Failure{"the number " + std::string(text.substr(0, 60)) + " does not fit into 64 bits",
                     is_small ? "the smallest is about 4.9e-324; write 0 for zero, or put it in quotes if it is text"
                              : "the largest is about 1.8e308; put it in quotes if it is text"};
    }
    return written(Node::floating(value));
  }
  return Node::string(std::string(text));
}

}  // namespace runner::core
