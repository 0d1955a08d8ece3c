#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "components/data/data.h"
#include "components/data/text_files.h"
#include "components/tokenizer/tokenizer.h"

namespace components::data {

struct TokenTextOptions {
  std::int64_t max_seq_len = 0, stride = 0;  ///< in tokens
  SplitRange share;                          ///< of the tokens of all files
  bool in_place = false;                     ///< the target of a token is itself, not the next one
};

/// Windows over the tokens of text files, each shifted by one token as target unless they are `in_place`. Every file is
/// encoded by itself, without special tokens, and held in memory; a set with the files of `inputs.train` takes its
/// tokens. Null when an error was reported: a file that cannot be read or is not UTF-8, too few tokens.
std::shared_ptr<Dataset> make_token_text(const std::vector<TextFile>& files, const TokenTextOptions& options,
                                         std::shared_ptr<const tokenizer::Tokenizer> tokenizer, const Inputs& inputs);

}  // namespace components::data
