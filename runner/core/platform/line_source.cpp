#include "runner/core/platform/line_source.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "runner/core/units.h"

namespace runner::core {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;

}  // namespace

/// A file, unpacked where it is compressed.
class LineSource::Bytes {
 public:
  Bytes(const std::string& path, std::int64_t begin) {
    if (path.ends_with(".gz")) {
      packed_ = gzopen(path.c_str(), "rbe");
      is_packed_ = true;
    } else {
      plain_.open(path, std::ios::binary);
    }
    opened_ = is_packed_ ? packed_ != nullptr : plain_.is_open();
    if (!opened_) problem_ = std::string("cannot read it: ") + std::strerror(errno);
    if (opened_ && begin > 0) go_to(begin);
  }
  ~Bytes() {
    if (packed_ != nullptr) gzclose_r(packed_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  /// How many of `size` bytes were read; 0 at the end or after a problem.
  std::size_t read(char* to, std::size_t size) {
    if (!opened_) return 0;
    if (is_packed_) return unpack(to, size);
    plain_.read(to, static_cast<std::streamsize>(size));
    if (plain_.bad()) problem_ = std::string("cannot read it: ") + std::strerror(errno);
    return static_cast<std::size_t>(plain_.gcount());
  }

  const std::string& problem() const { return problem_; }

 private:
  void go_to(std::int64_t begin) {
    if (is_packed_) {
      gzseek(packed_, begin, SEEK_SET);  // the next read does it, and tells what is wrong
    } else {
      plain_.seekg(begin);
    }
  }

  std::size_t unpack(char* to, std::size_t size) {
    const int read = gzread(packed_, to, static_cast<unsigned>(size));
    if (gzdirect(packed_) != 0) {
      problem_ = "not compressed with gzip, in spite of its name";
      return 0;
    }
    int status = Z_OK;
    const char* const words = gzerror(packed_, &status);
    if (status == Z_BUF_ERROR) {
      problem_ = "the compressed file is cut short";
    } else if (status == Z_ERRNO) {
      problem_ = std::string("cannot read it: ") + std::strerror(errno);
    } else if (status != Z_OK && status != Z_STREAM_END) {
      problem_ = std::string("the compressed file is damaged: ") + words;
    }
    return read > 0 ? static_cast<std::size_t>(read) : 0;
  }

  std::ifstream plain_;
  gzFile packed_ = nullptr;
  bool is_packed_ = false, opened_ = false;
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

/// Reads on; false after a problem. A last line without an end counts only when the file was read to its own.
bool LineSource::fill() {
  text_.erase(0, at_);
  base_ += static_cast<std::int64_t>(at_);
  at_ = 0;
  searched_ = text_.size();
  text_.resize(searched_ + kChunk);
  const std::size_t read = source_->read(text_.data() + searched_, kChunk);
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
