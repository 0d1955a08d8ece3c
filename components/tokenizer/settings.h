#pragma once

#include <optional>
#include <string>
#include <vector>

#include "components/tokenizer/bert.h"
#include "components/tokenizer/tokenizer.h"

namespace components::tokenizer {

/// What the files beside a vocabulary say.
struct FolderSettings {
  Settings settings;
  /// A special token by its text, else by its id.
  struct Token {
    std::optional<std::string> text;
    std::optional<std::int64_t> id;
  };
  Token bos, eos, pad, unk, cls, sep, mask;
  BertNormalization bert;  ///< of a vocab.txt
  /// Tokens that are added to those of the vocabulary's file, in order; their ids follow from that, as in Transformers.
  std::vector<AddedToken> added;
  std::vector<std::string> extra;     ///< special ones that follow these
  std::vector<std::string> named;     ///< those with a meaning: the ones that the vocabulary has are found in texts
  bool split_special_tokens = false;  ///< special tokens in a text are text
};

/// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json and config.json of a
/// folder; the first that names a token counts. Of added tokens the second and third count where the first has no
/// added_tokens_decoder. None of them has to be there. Throws RunError that names file and field.
FolderSettings read_settings(const std::string& folder);

}  // namespace components::tokenizer
