#pragma once

#include <string_view>

namespace runner::hub {

/// Whether a pattern of a data card or of the `datasets` library means this file of a repository: `*`, `?` and `[...]`
/// stay within a folder, `**` as a whole part is any number of folders. Hidden files and folders (`.name`), and folders
/// that begin with `__`, are meant only where the pattern has as many of them. Takes time in proportion to the product
/// of the lengths, whatever the pattern.
bool matches(std::string_view pattern, std::string_view file);

/// Whether it has `*`, `?` or `[`.
bool is_pattern(std::string_view text);

}  // namespace runner::hub
