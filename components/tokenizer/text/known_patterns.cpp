#include "components/tokenizer/text/known_patterns.h"

#include <array>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

const char* const kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const char* const kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::uint8_t kKind = kLetter | kNumber | kSpace;  // a character is one of these at most

/// What both patterns are made of. Each part covers text from `at` on; together they cover all of it.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), table_(char_table()) {
    for (unsigned c = 0; c < ascii_.size(); ++c) ascii_[c] = table_[c] & kKind;
  }

  std::size_t size() const { return text_.size(); }
  char byte(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  struct Seen {
    std::uint8_t kind;  ///< kLetter, kNumber, kSpace, or 0 for what is none of them
    unsigned length;    ///< bytes; 0 at the end of the text
  };
  Seen at(std::size_t i) const {
    if (i >= text_.size()) return {kKind, 0};
    const auto first = static_cast<unsigned char>(text_[i]);
    if (first < 0x80) return {ascii_[first], 1};
    const CodePoint point = code_point_at(text_, i);
    return {static_cast<std::uint8_t>(table_[point.value] & kKind), point.length};
  }

  /// The end of the run of characters of that kind.
  std::size_t run(std::size_t i, std::uint8_t kind) const {
    for (;;) {
      const Seen seen = at(i);
      if (seen.kind != kind || seen.length == 0) return i;
      i += seen.length;
    }
  }
  /// The same, of at most `most` characters.
  std::size_t run(std::size_t i, std::uint8_t kind, int most) const {
    for (; most > 0; --most) {
      const Seen seen = at(i);
      if (seen.kind != kind || seen.length == 0) break;
      i += seen.length;
    }
    return i;
  }

  /// `\s+(?!\S)|\s+` for white space in [begin, end): without the last character, unless it is the only one or the
  /// text ends.
  std::size_t space(std::size_t begin, std::size_t end) const {
    if (end == text_.size()) return end;
    std::size_t last = end - 1;
    while ((static_cast<unsigned char>(text_[last]) & 0xC0) == 0x80) --last;
    return last == begin ? end : last;
  }

 private:
  std::string_view text_;
  const CharTable& table_;
  std::array<std::uint8_t, 128> ascii_;
};

class Gpt2 final : public Pattern {
 public:
  void find(std::string_view text, std::vector<Range>& matches) const override {
    const Scanner scan(text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = end_of(scan, at);
      matches.push_back({at, end});
      at = end;
    }
  }

 private:
  static std::size_t end_of(const Scanner& scan, std::size_t at) {
    if (scan.byte(at) == '\'') {
      const char next = scan.byte(at + 1), after = scan.byte(at + 2);
      if (next == 's' || next == 't' || next == 'm' || next == 'd') return at + 2;
      if ((next == 'r' && after == 'e') || (next == 'v' && after == 'e') || (next == 'l' && after == 'l'))
        return at + 3;
    }
    const Scanner::Seen here = scan.at(at);
    if (here.kind != kSpace) return scan.run(at + here.length, here.kind);
    if (scan.byte(at) == ' ') {
      const Scanner::Seen next = scan.at(at + 1);
      if (next.length > 0 && next.kind != kSpace) return scan.run(at + 1 + next.length, next.kind);
    }
    return scan.space(at, scan.run(at + here.length, kSpace));
  }
};

class Llama3 final : public Pattern {
 public:
  explicit Llama3(int digits) : digits_(digits) {}

  void find(std::string_view text, std::vector<Range>& matches) const override {
    const Scanner scan(text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = end_of(scan, at);
      matches.push_back({at, end});
      at = end;
    }
  }

 private:
  static bool is_line_end(char c) { return c == '\r' || c == '\n'; }

  /// The length of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` here; 0 for none.
  static std::size_t contraction(const Scanner& scan, std::size_t at) {
    const auto lower = [&](std::size_t i) {
      const char c = scan.byte(i);
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char next = lower(at + 1), after = lower(at + 2);
    if (next == 's' || next == 't' || next == 'm' || next == 'd') return 2;
    if ((next == 'r' && after == 'e') || (next == 'v' && after == 'e') || (next == 'l' && after == 'l')) return 3;
    // The long s, U+017F, is an s in another case.
    return scan.byte(at + 1) == '\xC5' && scan.byte(at + 2) == '\xBF' ? 3 : 0;
  }

  std::size_t end_of(const Scanner& scan, std::size_t at) const {
    const char byte = scan.byte(at);
    if (byte == '\'') {
      if (const std::size_t length = contraction(scan, at)) return at + length;
    }
    const Scanner::Seen here = scan.at(at);
    if (here.kind == kLetter) return scan.run(at + here.length, kLetter);
    if (here.kind == kNumber) return scan.run(at + here.length, kNumber, digits_ - 1);
    const Scanner::Seen next = scan.at(at + here.length);
    if (!is_line_end(byte) && next.length > 0 && next.kind == kLetter) {
      return scan.run(at + here.length + next.length, kLetter);
    }
    if (here.kind == 0) return line_ends(scan, scan.run(at + here.length, 0));
    if (byte == ' ' && next.length > 0 && next.kind == 0) return line_ends(scan, scan.run(at + 1 + next.length, 0));
    const std::size_t end = scan.run(at + here.length, kSpace);
    for (std::size_t i = end; i > at; --i) {
      if (is_line_end(scan.byte(i - 1))) return i;
    }
    return scan.space(at, end);
  }

  static std::size_t line_ends(const Scanner& scan, std::size_t at) {
    while (is_line_end(scan.byte(at))) ++at;
    return at;
  }

  int digits_;
};

}  // namespace

std::unique_ptr<Pattern> known_pattern(const std::string& regex) {
  if (regex == kGpt2Pattern) return std::make_unique<Gpt2>();
  if (regex == kLlama3Pattern) return std::make_unique<Llama3>(3);
  if (regex == kQwen2Pattern) return std::make_unique<Llama3>(1);
  return nullptr;
}

}  // namespace components::tokenizer
