#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace components::tokenizer {

/// The printable character that stands for a byte in the vocabulary of a byte-level model, as GPT-2 chose them.
char32_t char_of_byte(std::uint8_t byte);
/// Nothing when the character stands for none.
std::optional<std::uint8_t> byte_of_char(char32_t value);

void append_byte_chars(std::string& text, std::string_view bytes);
/// Nothing when a character of `token` stands for no byte.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace components::tokenizer
