#include "components/data/record/array_records.h"

#include <cstddef>
#include <optional>
#include <string_view>

#include "components/data/text_utils.h"
#include "runner/core/error.h"
#include "runner/core/packed/packed_file.h"
#include "runner/core/platform/byte_source.h"

namespace components::data {
namespace {

using runner::core::ByteSource;
using runner::core::LineSource;
using runner::core::RunError;

constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::int64_t kGapMax = 1 << 20;  ///< of unread text, from which on the file is opened again behind it
constexpr int kNone = -1;
constexpr std::string_view kMark = "\xEF\xBB\xBF";

bool is_space(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class ArrayRecords final : public RecordSource {
 public:
  ArrayRecords(const std::string& path, const Place& start)
      : path_(path), bytes_(path, start.offset), end_(start.offset > 0 ? start : Place{}) {}

  std::optional<std::string_view> next() override {
    if (end_.offset == 0) {
      skip_mark();
      skip_space();
      take();  // the bracket
      skip_space();
    }
    if (peek() == kNone) fail("the array is cut short");
    if (peek() == ']') {
      const Place at = end_;
      take();
      skip_space();
      if (peek() != kNone) fail("the array ends, and something stands behind it");
      end_ = at;
      has_ended_ = true;
    }
    if (has_ended_) return std::nullopt;
    number_ = end_.lines + 1;
    read_element();
    if (element_.empty()) fail("a comma stands in the place of a record");
    if (peek() == ',') {
      take();
      skip_space();
    }
    return element_;
  }

  bool is_text() const override { return false; }
  std::int64_t number() const override { return number_; }
  Place end() const override { return end_; }
  bool is_far(std::int64_t offset) const override {
    return !runner::core::is_packed(path_) && offset - end_.offset > kGapMax;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw RunError(path_ + ":" + std::to_string(end_.lines + 1) + ": " + what);
  }

  int peek() {
    if (at_ == text_.size() && !has_ended_) {
      text_.resize(kChunk);
      text_.resize(bytes_.read(text_.data(), kChunk));
      at_ = 0;
      if (!bytes_.problem().empty()) fail(bytes_.problem());
    }
    return at_ < text_.size() ? static_cast<unsigned char>(text_[at_]) : kNone;
  }

  void take() {
    if (peek() == kNone) return;
    if (text_[at_] == '\n') ++end_.lines;
    ++at_;
    ++end_.offset;
  }

  /// A byte order mark, as editors on Windows write it.
  void skip_mark() {
    for (const char c : kMark) {
      if (peek() != static_cast<unsigned char>(c)) return;
      take();
    }
  }

  void skip_space() {
    while (is_space(peek())) take();
  }

  /// Up to the comma or bracket behind it, which stays.
  void read_element() {
    element_.clear();
    int depth = 0;
    bool in_text = false;
    for (int c = peek();; c = peek()) {
      if (c == kNone) fail("the array is cut short");
      if (in_text) {
        if (c == '\\') append();
        if (c == '"') in_text = false;
      } else if (c == '"') {
        in_text = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        break;
      } else if (depth > 0 && (c == '}' || c == ']')) {
        --depth;
      }
      append();
    }
    while (!element_.empty() && is_space(static_cast<unsigned char>(element_.back()))) element_.pop_back();
  }

  void append() {
    if (peek() == kNone) return;
    if (element_.size() >= LineSource::kLineMax) {
      fail("longer than " + with_commas(static_cast<std::int64_t>(LineSource::kLineMax)) +
           " bytes, the most that one record may have");
    }
    element_ += text_[at_];
    take();
  }

  std::string path_;
  ByteSource bytes_;
  Place end_;
  std::string text_;    // what was read
  std::size_t at_ = 0;  // of it, the next character
  std::string element_;
  std::int64_t number_ = 0;
  bool has_ended_ = false;
};

}  // namespace

std::unique_ptr<RecordSource> array_records(const std::string& path, const RecordSource::Place& start) {
  return std::make_unique<ArrayRecords>(path, start);
}

bool is_json_array(const std::string& path) {
  ByteSource bytes(path);
  std::string text(4096, '\0');
  std::string_view mark = kMark;
  bool has_bracket = false;
  for (std::size_t read = bytes.read(text.data(), text.size()); read > 0; read = bytes.read(text.data(), text.size())) {
    for (std::size_t i = 0; i < read; ++i) {
      if (!mark.empty() && text[i] == mark.front()) {
        mark.remove_prefix(1);
        continue;
      }
      mark = {};  // it stands before all else
      if (is_space(static_cast<unsigned char>(text[i]))) continue;
      if (has_bracket) return text[i] == '{' || text[i] == ']';
      if (text[i] != '[') return false;
      has_bracket = true;
    }
  }
  return false;
}

}  // namespace components::data
