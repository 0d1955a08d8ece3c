#include "runner/cli/group/varied.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/path.h"
#include "runner/core/scalar.h"
#include "runner/recipe/read.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr const char* kUsage =
    "write optimizer.lr=1e-4,3e-4 for values, model.n_layer=2..6 for a range, "
    "0..1:0.25 for steps, 1e-5..1e-2:log for a logarithmic range";

/// The pieces between commas outside of brackets and quotes.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      pieces.emplace_back();
      continue;
    }
    pieces.back() += c;
  }
  return pieces;
}

std::optional<Node> number_of(std::string_view text) {
  const auto value = core::resolve_scalar(text);
  if (!value || !value.value().is_number()) return std::nullopt;
  return value.value();
}

/// `2..6`, `0..1:0.25`, `1e-5..1e-2:log`; nothing if it is not a range.
std::optional<Node> range_of(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t colon = rest.find(':');
  const auto min = number_of(text.substr(0, dots)), max = number_of(rest.substr(0, colon));
  if (!min || !max) return std::nullopt;
  Node range = Node::mapping();
  range.set("min", *min);
  range.set("max", *max);
  if (colon == std::string_view::npos) return range;
  const std::string_view how = rest.substr(colon + 1);
  if (how == "log") {
    range.set("distribution", Node::string("log"));
    return range;
  }
  const auto step = number_of(how);
  if (!step) return std::nullopt;
  range.set("q", *step);
  return range;
}

/// Whether this looks like a range but is not one: `2..six`, `2..6:lin`, `2..6,8`.
bool is_nearly_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  return dots != std::string_view::npos && number_of(text.substr(0, dots)).has_value();
}

/// The range that `1e-4:1e-2` or `1:9:2` is meant to be: `1e-4..1e-2`, `1..9:2`.
std::optional<std::string> meant_range(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string range = text.substr(0, colon) + ".." + text.substr(colon + 1);
  return range_of(range) ? std::optional(range) : std::nullopt;
}

}  // namespace

core::Result<std::string> sweep_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return core::Failure{"\"" + text + "\" is not PATH=VALUES", kUsage};
  }
  const std::string path = text.substr(0, equals), values = text.substr(equals + 1);
  Node parameter = Node::mapping();
  if (const auto range = range_of(values)) {
    parameter = *range;
  } else {
    core::Diagnostics diagnostics;
    const auto source = std::make_shared<const core::Source>(core::Source{text, "", core::Source::Kind::kFlag});
    Node list = Node::sequence();
    for (const std::string& piece : split(values)) {
      auto value = recipe::read_value(source, piece, diagnostics);
      if (!value || piece.empty()) return core::Failure{"\"" + piece + "\" in " + text + " is not a value", kUsage};
      if (is_nearly_range(piece)) {
        return core::Failure{"\"" + piece + "\" in " + text + " is neither a range nor a value",
                             std::string(kUsage) + "; put text with dots in quotes"};
      }
      if (const auto range = meant_range(piece)) {
        return core::Failure{"\"" + piece + "\" in " + text + " is not a range",
                             "write " + path + "=" + *range + "; put text with a colon in quotes"};
      }
      list.items().push_back(*std::move(value));
    }
    parameter.set("values", std::move(list));
  }
  return "sweep.parameters[" + core::to_json(Node::string(path), -1) + "]=" + core::to_json(parameter, -1);
}

}  // namespace runner::cli
