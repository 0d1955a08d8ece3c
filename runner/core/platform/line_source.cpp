#include "runner/core/platform/line_source.h"

#include <utility>

#include "runner/core/platform/byte_source.h"
#include "runner/core/units.h"

namespace runner::core {
namespace {

constexpr std::int64_t kChunk = std::int64_t{256} << 10;

}  // namespace

LineSource::LineSource(const std::string& path, const Place& start)
    : source_(std::make_unique<ByteSource>(path, start.offset)), base_(start.offset), number_(start.lines) {}

LineSource::~LineSource() = default;

std::optional<std::string_view> LineSource::next() {
  while (problem_.empty()) {
    const std::size_t end = text_.find('\n', searched_);
    if (end != std::string::npos) {
      ++number_;
      const std::string_view line = std::string_view(text_).substr(at_, end - at_);
      at_ = searched_ = end + 1;
      if (is_in_long_gap(line))
        return stop("more than " + format_bytes(kBlankMax) + " of blank lines in a row", number_);
      return line;
    }
    if (text_.size() - at_ > kLineMax) {
      return stop("longer than " + format_bytes(kLineMax) + ", the most that one record may have", number_ + 1);
    }
    if (ended_) {
      if (at_ == text_.size()) return std::nullopt;
      ++number_;
      const std::string_view line = std::string_view(text_).substr(at_);
      at_ = searched_ = text_.size();
      return line;
    }
    if (!fill()) return std::nullopt;
  }
  return std::nullopt;
}

/// Whether too much lies since the last line that is not blank.
bool LineSource::is_in_long_gap(std::string_view line) {
  const bool is_blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
  blank_ = is_blank ? blank_ + line.size() + 1 : 0;
  return blank_ > kBlankMax;
}

/// Reads on; false after a problem. A last line without an end counts only when the file was read to its own.
bool LineSource::fill() {
  text_.erase(0, at_);
  base_ += static_cast<std::int64_t>(at_);
  at_ = 0;
  searched_ = text_.size();
  text_.resize(searched_ + static_cast<std::size_t>(kChunk));
  const std::size_t read = source_->read(text_.data() + searched_, static_cast<std::size_t>(kChunk));
  text_.resize(searched_ + read);
  bytes_ += static_cast<std::int64_t>(read);
  if (read > 0) return true;
  if (!source_->problem().empty()) {
    stop(source_->problem(), number_ > 0 ? number_ + 1 : 0);
    return false;
  }
  ended_ = true;
  return true;
}

std::nullopt_t LineSource::stop(std::string problem, std::int64_t line) {
  problem_ = std::move(problem);
  problem_line_ = line;
  return std::nullopt;
}

}  // namespace runner::core
