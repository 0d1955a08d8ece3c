#pragma once

#include <string>

namespace runner::cli {

/// Whether a `.txt` file holds texts, and no columns of words and tags: it begins with neither JSON nor a tab, and not
/// with sentences of as many columns in each line, which an empty line ends.
bool is_plain_text(const std::string& path);

/// Whether the file is a .txt whose lines all have columns between tabs: not the words of sentences, between which
/// there are empty lines.
bool is_table_of_tabs(const std::string& path);

}  // namespace runner::cli
