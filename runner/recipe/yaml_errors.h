#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace runner::recipe {

/// An error of yaml-cpp in plain words.
struct YamlError {
  std::string message;
  std::string hint;
  bool is_bare_reference = false;  ///< the culprit is the first `${` of the line
};

/// `library_message` as yaml-cpp words it; `line` is the text of the line where it stumbled, `rest` what follows the
/// position.
YamlError explain_yaml_error(std::string_view library_message, std::string_view line, std::string_view rest);

/// The line that holds the byte at `at`.
std::string_view line_around(std::string_view text, std::size_t at);

/// Where the slips stand that yaml-cpp notices only later, as offsets into the text; npos when there is none.
std::size_t find_indenting_tab(std::string_view text, std::size_t end);  ///< the first tab before a value, up to `end`
std::size_t find_open_quote(std::string_view text, std::size_t from);    ///< a quote that is still open at the end
std::size_t find_missing_space(std::string_view text, std::size_t at);   ///< `key:value` or `-entry` at or above `at`

}  // namespace runner::recipe
