#include "runner/core/platform/line_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "runner/core/platform/gzip_file.h"
#include "runner/core/units.h"

namespace runner::core {
namespace {

constexpr std::int64_t kChunk = std::int64_t{256} << 10;

}  // namespace

/// A file, unpacked where it is compressed.
class LineSource::Bytes {
 public:
  Bytes(const std::string& path, std::int64_t begin) {
    if (path.ends_with(".gz")) {
      packed_ = std::make_unique<GzipFile>(path);
      pass_over(begin);
      return;
    }
    plain_.open(path, std::ios::binary);
    if (!plain_.is_open()) problem_ = std::string("cannot read it: ") + std::strerror(errno);
    if (begin > 0) plain_.seekg(begin);
  }

  /// How many of `size` bytes were read; 0 at the end or after a problem.
  std::size_t read(char* to, std::size_t size) {
    if (packed_ != nullptr) return packed_->read(to, size);
    if (!problem_.empty()) return 0;
    plain_.read(to, static_cast<std::streamsize>(size));
    if (plain_.bad()) problem_ = std::string("cannot read it: ") + std::strerror(errno);
    return static_cast<std::size_t>(plain_.gcount());
  }

  const std::string& problem() const { return packed_ != nullptr ? packed_->problem() : problem_; }

 private:
  void pass_over(std::int64_t bytes) {
    std::string passed(static_cast<std::size_t>(std::min<std::int64_t>(bytes, kChunk)), '\0');
    while (bytes > 0) {
      const auto most = static_cast<std::size_t>(std::min<std::int64_t>(bytes, kChunk));
      const std::size_t read = packed_->read(passed.data(), most);
      if (read == 0) return;
      bytes -= static_cast<std::int64_t>(read);
    }
  }

  std::ifstream plain_;
  std::unique_ptr<GzipFile> packed_;
  std::string problem_;
};

LineSource::LineSource(const std::string& path, const Place& start)
    : source_(std::make_unique<Bytes>(path, start.offset)), base_(start.offset), number_(start.lines) {}

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
