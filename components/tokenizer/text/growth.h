#pragma once

#include <cstddef>
#include <string>

namespace components::tokenizer {

/// What one stage of a tokenizer may make of one text. Sixty steps that each write a character twice would make 2^60 of
/// it: whoever writes says the size first.
class Growth {
 public:
  static constexpr std::size_t kMax = 0x7FFFFFFF;  ///< of any text: places in it are 32-bit numbers

  /// `stage`: for messages, such as `the normalizer`. `before`: how many of `unit` the stage begins with.
  Growth(std::string stage, std::size_t before, const char* unit = "bytes");

  /// RunError when no step may write a text of this size.
  void check(std::size_t size) const {
    if (size > step_max_) refuse(size, step_max_);
  }
  /// A step writes a text of this size. RunError also when all steps together have written too much.
  void add(std::size_t size) {
    check(size);
    written_ += size;
    if (written_ > all_max_) refuse(written_, all_max_);
  }

 private:
  [[noreturn]] void refuse(std::size_t size, std::size_t max) const;

  std::string stage_;
  const char* unit_;
  std::size_t before_, step_max_, all_max_;
  std::size_t written_ = 0;
};

}  // namespace components::tokenizer
