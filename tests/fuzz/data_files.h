#pragma once

#include <string>
#include <vector>

namespace tests {

/// Whole files of data: CSV, columns of CoNLL and CoNLL-U, questions in SQuAD's layout.
std::vector<std::string> data_corpus();

/// Gives it to every reader of such files. Aborts when one is neither read nor refused, or gives a record that is no
/// JSON.
void read_data_file(const std::string& text);

/// The folder that these are written to.
void remove_data_folder();

}  // namespace tests
