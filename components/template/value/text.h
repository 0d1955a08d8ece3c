#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "components/template/value/value.h"

namespace components::jinja {

/// Texts in a row; what is known of their origins is kept.
class TextBuilder {
 public:
  void add(std::string_view bytes) { text_.bytes += bytes; }
  void add(const Text& part) { add(part, 0, part.bytes.size()); }
  /// Bytes [begin, end) of `part`.
  void add(const Text& part, std::size_t begin, std::size_t end);
  /// Bytes that were made from a message's text.
  void add_from(std::string_view bytes, std::int32_t message);
  /// A text that is written while a pass of a message runs, or none (kNoMessage): what has no message yet is its.
  void add_owned(const Text& part, std::int32_t message, bool in_generation);
  /// A text that a pass leaves in a namespace, to be written by a later one or behind the loop.
  void add_left(const Text& part, std::int32_t message);
  /// What was added from byte `begin` on and has no message is the template's for this one.
  void own_from(std::size_t begin, std::int32_t message, bool in_generation);
  std::size_t size() const { return text_.bytes.size(); }
  Text take() { return std::move(text_); }

 private:
  void own(std::size_t begin, std::size_t end, std::int32_t message, bool in_generation);

  Text text_;
};

/// Bytes [begin, end) of `text`, with their origins.
Value part_of(const Text& text, std::size_t begin, std::size_t end);

/// `bytes`, which were made from `source` as a whole (in upper case, as JSON): all of them are its message's.
Value made_from(const Value& source, std::string bytes);

std::size_t code_points(std::string_view text);
/// The byte at which the code point of this number begins; the size where there are not as many.
std::size_t byte_of(std::string_view text, std::size_t code_point);

/// Decodes the code point at `at` and moves behind it; a byte that is not UTF-8 is U+FFFD.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_code_point(std::string& text, char32_t c);

/// Python's str.isspace() of one character.
bool is_space(char32_t c);
bool is_alphabetic(char32_t c);
/// Bytes of white space, or of one of `characters` where they are given, at the beginning and at the end.
std::size_t leading(std::string_view text, const std::string* characters = nullptr);
std::size_t trailing(std::string_view text, const std::string* characters = nullptr);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalized(std::string_view text);
std::string swapped_case(std::string_view text);
/// As str.title(): each word begins with a capital, a word being a run of letters.
std::string title(std::string_view text);
/// MarkupSafe's escape().
std::string escaped(std::string_view text);

/// Where str.split() without a separator finds words.
std::vector<std::pair<std::size_t, std::size_t>> words(std::string_view text, std::size_t splits_max);

}  // namespace components::jinja
