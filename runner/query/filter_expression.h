#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/language/pattern.h"
#include "runner/core/location.h"
#include "runner/core/node.h"
#include "runner/query/filter.h"

namespace runner::query {

/// One node of a filter that was read: parts below it, or a name and what is asked of it.
struct Filter::Expression {
  enum class Kind {
    kOr,
    kAnd,
    kNot,
    kCompare,  ///< `operation` with literals[0]
    kIn,       ///< one of `literals`
    kNotIn,
    kMatches,  ///< `pattern`
    kTag,      ///< a tag of the form literals[0], in which `*` stands for any text
    kHas,
  };
  Kind kind = Kind::kHas;
  std::vector<std::unique_ptr<Expression>> parts;  ///< of or, and, not
  std::string name;
  core::Location place;
  std::string operation;
  std::vector<core::Node> literals;
  std::optional<core::Pattern> pattern;
};

/// Reads a filter; nothing when `diagnostics` has the reason, with the place in the text.
std::unique_ptr<Filter::Expression> parse_filter(const std::string& text, core::Diagnostics& diagnostics);

}  // namespace runner::query
