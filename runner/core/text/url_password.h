#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace runner::core {

/// A range of a text.
struct TextSpan {
  std::size_t begin = 0, size = 0;
};

/// The passwords in the URLs of a text, in their order: `word` of `https://me:word@host` and of
/// `https://host/?token=word`, and a user of http(s) without a password that is as long as a token.
std::vector<TextSpan> find_url_passwords(std::string_view text);

/// The text with each of them replaced by `hidden`.
std::string hide_url_passwords(std::string_view text, std::string_view hidden);

}  // namespace runner::core
