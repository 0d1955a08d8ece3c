#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace components::generation {

/// Finds where generated text ends because it contains one of several strings, while the text comes in pieces.
///
/// What is shown ends with the stop, as in Transformers; it leaves out what the stop's last token has behind it, which
/// Transformers keeps, so that the text does not depend on how the tokenizer cuts it. Of several stops that one counts
/// which is whole first.
class StopStrings {
 public:
  /// Empty strings are ignored. No stops: everything is shown but the beginning of a character.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes the next bytes and returns the text that may be shown now. What may still become a stop, and a UTF-8
  /// character that is not whole, is held back. After a stop: "".
  std::string feed(std::string_view piece);

  /// What was held back, when nothing comes any more; a character that did not become whole is U+FFFD.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  /// Bytes at the end of what is held that may not be shown yet.
  std::size_t unsure() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace components::generation
