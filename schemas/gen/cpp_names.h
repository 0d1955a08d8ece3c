#pragma once

#include <string>
#include <string_view>

namespace schemas::gen {

/// `bf16-mixed` -> `Bf16Mixed`, `param_groups` -> `ParamGroups`.
std::string camel_case(std::string_view text);

/// Words that no member and no namespace may be called.
bool is_cpp_keyword(std::string_view word);

/// `"text"` with everything escaped that C++ asks for.
std::string cpp_string(std::string_view text);

/// The shortest literal that reads back to the same double: `0.1`, `1e-08`, `std::numeric_limits<double>::infinity()`.
std::string cpp_double(double value);

/// A raw string literal, in pieces of at most 60 KB, since compilers limit the length of one.
std::string cpp_raw_string(std::string_view text);

/// One line of plain text: line breaks become spaces.
std::string one_line(std::string_view text);

}  // namespace schemas::gen
