#pragma once

#include <string>

#include "tests/support/folder.h"

namespace tests {

/// The text of a file of tests/components/tokenizer/files.
std::string tokenizer_file(const std::string& name);
/// The text of the tokenizer.json of the examples, whose end token is <|im_end|> and which has no padding token.
std::string example_tokenizer();

/// A folder with a tokenizer, for recipes that name `tokenizer.json` beside their data.
class TokenizerFolder : public Folder {
 public:
  /// The tokenizer of the examples.
  TokenizerFolder();
  /// The same, with these records in a.jsonl.
  explicit TokenizerFolder(const std::string& records);
  /// Another tokenizer.json, and the fields of its tokenizer_config.json.
  TokenizerFolder(const std::string& tokenizer, const std::string& fields);
};

}  // namespace tests
