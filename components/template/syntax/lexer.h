#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "components/template/syntax/syntax.h"

namespace components::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    kData,  ///< text outside of tags
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::string text;  ///< of a string: its value; of a number: without `_`
  Place place;

  bool is_operator(std::string_view name) const { return kind == Kind::kOperator && text == name; }
  bool is_name(std::string_view name) const { return kind == Kind::kName && text == name; }
};

/// Splits a template as Jinja2 does with trim_blocks and lstrip_blocks: white space that `-`, `+` and these settings
/// take away is gone from kData, comments are gone, line ends are "\n", and one at the end of the template is left out.
/// Throws Failed.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace components::jinja
