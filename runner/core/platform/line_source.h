#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace runner::core {

class ByteSource;

/// Reads a text file line by line; a compressed one (`.gz`, `.zst`) is unpacked on the way. Memory is that of the
/// longest line, of at most kLineMax bytes.
class LineSource {
 public:
  /// The beginning of a line of the unpacked text.
  struct Place {
    std::int64_t offset = 0;  ///< bytes in front of it
    std::int64_t lines = 0;   ///< lines in front of it
  };

  explicit LineSource(const std::string& path) : LineSource(path, {}) {}
  /// Reads from `start` on. A compressed file is unpacked up to there, a plain one is not read.
  LineSource(const std::string& path, const Place& start);
  ~LineSource();
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;

  /// The next line without its end, until the next call; nothing at the end of the file or of what can be read.
  std::optional<std::string_view> next();
  std::int64_t number() const { return number_; }  ///< of that line, from 1
  std::int64_t bytes() const { return bytes_; }    ///< of text so far, unpacked
  Place end() const {
    return {base_ + static_cast<std::int64_t>(at_), number_};
  }  ///< of that line, where the next one begins

  /// Why the file could not be read to its end: a line that is too long, more than kBlankMax of blank lines in a row,
  /// compressed data that are cut short or damaged, a failure of the disk. "" when it was.
  const std::string& problem() const { return problem_; }
  /// The line at which it was; 0: the file as a whole.
  std::int64_t problem_line() const { return problem_line_; }

  static constexpr std::size_t kLineMax = std::size_t{32} << 20;
  /// Of line ends and blanks. A megabyte of compressed ones is a gigabyte, in which no record would be found.
  static constexpr std::size_t kBlankMax = std::size_t{4} << 20;

 private:
  bool is_in_long_gap(std::string_view line);
  bool fill();
  std::nullopt_t stop(std::string problem, std::int64_t line);

  std::unique_ptr<ByteSource> source_;
  std::string text_;          // what was read and not yet returned, behind at_
  std::size_t at_ = 0;        // where the next line begins
  std::size_t searched_ = 0;  // no line ends before it
  std::size_t blank_ = 0;     // bytes of blank lines since the last other one
  bool ended_ = false;
  std::int64_t base_ = 0;  // offset of text_ in the file
  std::int64_t number_ = 0, bytes_ = 0, problem_line_ = 0;
  std::string problem_;
};

}  // namespace runner::core
