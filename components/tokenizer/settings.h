#pragma once

#include <optional>
#include <string>

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
  Token bos, eos, pad, unk;
};

/// Reads tokenizer_config.json, special_tokens_map.json, generation_config.json and config.json of a folder; the first
/// that names a token counts. None of them has to be there. Throws RunError that names file and field.
FolderSettings read_settings(const std::string& folder);

}  // namespace components::tokenizer
