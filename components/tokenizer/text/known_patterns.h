#pragma once

#include <memory>
#include <string>

#include "components/tokenizer/text/pattern.h"

namespace components::tokenizer {

/// The pattern of the `ByteLevel` pre-tokenizer, that of GPT-2.
extern const char* const kGpt2Pattern;

/// Code that matches what one of these patterns does, many times as fast: GPT-2, Llama 3, Qwen2. Null for others.
std::unique_ptr<Pattern> known_pattern(const std::string& regex);

}  // namespace components::tokenizer
