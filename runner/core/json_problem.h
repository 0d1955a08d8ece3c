#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace runner::core {

/// `is not valid JSON from byte 15 on: JSON has no NaN; write null`: what is wrong with a text that a parser
/// refused at this byte (from 1), as far as it can be told.
std::string json_problem(std::string_view text, std::size_t position);

}  // namespace runner::core
