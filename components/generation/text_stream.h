#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace components::generation {

/// Text of tokens that come one by one. A token may be a part of a character, and a tokenizer may write a token in
/// another way at the beginning of a text: what a few tokens say together is compared with what they said before.
class TextStream {
 public:
  using Decode = std::function<std::string(std::span<const std::int32_t>)>;
  explicit TextStream(Decode decode) : decode_(std::move(decode)) {}

  /// The text that this token adds; "" while a character is not whole.
  std::string push(std::int32_t token);
  /// What has not been returned, at the end.
  std::string finish();

 private:
  std::string take(bool whole_only);

  Decode decode_;
  std::vector<std::int32_t> tokens_;
  std::size_t begin_ = 0, returned_ = 0;  // tokens [begin, returned) are what the next ones are decoded behind
};

}  // namespace components::generation
