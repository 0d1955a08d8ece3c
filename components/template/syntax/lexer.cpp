#include "components/template/syntax/lexer.h"

#include <algorithm>
#include <array>

#include "components/template/value/text.h"
#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

std::string normalized(std::string_view source) {
  std::string made;
  made.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      made += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      made += source[i];
    }
  }
  if (made.ends_with('\n')) made.pop_back();
  return made;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) tag(next_tag());
    push(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::size_t at) {
    place_ = {};
    counted_ = 0;
    move_place(at);
    throw Failed{std::move(message), place_};
  }

  /// Brings the place to a later byte.
  void move_place(std::size_t to) {
    for (; counted_ < to && counted_ < source_.size(); ++counted_) {
      if (source_[counted_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(source_[counted_]) & 0xC0U) != 0x80) {
        ++place_.column;
      }
    }
  }

  void push(Token::Kind kind, std::string text) {
    move_place(at_);
    tokens_.push_back({kind, std::move(text), place_});
  }

  bool starts(std::string_view text, std::size_t at) const {
    return std::string_view(source_).substr(at).starts_with(text);
  }

  std::size_t skip_space(std::size_t at) const { return at + leading(std::string_view(source_).substr(at)); }

  /// The byte at which the next tag begins; the data before it is still to be pushed.
  std::size_t next_tag() const {
    for (std::size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1)) {
      if (i + 1 < source_.size() && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    }
    return source_.size();
  }

  /// The end of `text` without what the sign of the tag behind it, or lstrip_blocks, takes away.
  std::size_t stripped(std::size_t begin, std::size_t end, char sign, bool is_variable) const {
    const std::string_view text = std::string_view(source_).substr(begin, end - begin);
    if (sign == '-') return end - trailing(text);
    if (sign == '+' || is_variable) return end;
    const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    if (line == 0 && !line_starting_) return end;
    return leading(text.substr(line)) == text.size() - line ? begin + line : end;
  }

  void push_data(std::size_t end) {
    if (end > at_) push(Token::Kind::kData, source_.substr(at_, end - at_));
  }

  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  /// Behind a tag that ends at `at`: `trims` white space, or one line end of a block.
  void end_tag(std::size_t at, bool trims, bool is_block) {
    if (trims) {
      at = skip_space(at);
    } else if (is_block && at < source_.size() && source_[at] == '\n') {
      ++at;
    }
    line_starting_ = at > 0 && source_[at - 1] == '\n';
    at_ = at;
  }

  void tag(std::size_t begin) {
    if (begin == source_.size()) {
      push_data(begin);
      at_ = begin;
      return;
    }
    const char kind = source_[begin + 1], sign = sign_at(begin + 2);
    std::size_t at = begin + 2 + (sign ? 1 : 0);
    push_data(stripped(at_, begin, sign, kind == '{'));
    if (kind == '#') return comment(begin, at);
    if (kind == '%' && raw(begin, at)) return;
    at_ = begin;
    push(kind == '{' ? Token::Kind::kVariableBegin : Token::Kind::kBlockBegin, "");
    at_ = at;
    inside(kind == '{', begin);
  }

  void comment(std::size_t begin, std::size_t at) {
    const std::size_t end = source_.find("#}", at);
    if (end == std::string::npos) fail("a comment is not closed with \"#}\"", begin);
    const char last = end > at ? source_[end - 1] : '\0';
    end_tag(end + 2, last == '-', last != '+');
  }

  bool raw(std::size_t begin, std::size_t at) {
    at = skip_space(at);
    if (!starts("raw", at)) return false;
    at = skip_space(at + 3);
    const bool trims = starts("-%}", at);
    if (!trims && !starts("%}", at)) return false;
    end_tag(at + (trims ? 3 : 2), trims, false);
    for (std::size_t i = source_.find("{%", at_); i != std::string::npos; i = source_.find("{%", i + 1)) {
      const char sign = sign_at(i + 2);
      std::size_t end = skip_space(i + 2 + (sign ? 1 : 0));
      if (!starts("endraw", end)) continue;
      end = skip_space(end + 6);
      const bool ends_with_trim = starts("-%}", end), ends_with_plus = starts("+%}", end);
      if (!ends_with_trim && !ends_with_plus && !starts("%}", end)) continue;
      push_data(stripped(at_, i, sign, false));
      end_tag(end + (ends_with_trim || ends_with_plus ? 3 : 2), ends_with_trim, !ends_with_plus);
      return true;
    }
    fail("{% raw %} is not closed with {% endraw %}", begin);
  }

  void inside(bool is_variable, std::size_t begin) {
    const std::string_view close = is_variable ? "}}" : "%}";
    std::string open;  // the closing brackets that are to come
    while (true) {
      at_ = skip_space(at_);
      if (at_ >= source_.size()) {
        fail("this tag is not closed with \"" + std::string(close) + "\"", begin);
      }
      if (open.empty()) {
        const char sign = source_[at_];
        const std::size_t width = sign == '-' || (sign == '+' && !is_variable) ? 1 : 0;
        if (starts(close, at_ + width)) {
          push(is_variable ? Token::Kind::kVariableEnd : Token::Kind::kBlockEnd, "");
          return end_tag(at_ + width + 2, width && sign == '-', !is_variable && !width);
        }
      }
      if (!number() && !name() && !string()) operation(open);
    }
  }

  std::size_t digits(std::size_t at) const {
    if (at >= source_.size() || !is_digit(source_[at])) return at;
    while (at < source_.size() &&
           (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1])))) {
      ++at;
    }
    return at;
  }

  bool number() {
    if (!is_digit(source_[at_])) return false;
    std::size_t end = digits(at_);
    bool is_float = false;
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!behind_dot) {
      if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
        end = digits(end + 1);
        is_float = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        const std::size_t sign = end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
        if (const std::size_t exponent = digits(end + 1 + sign); exponent > end + 1 + sign) {
          end = exponent;
          is_float = true;
        }
      }
    }
    std::string text = source_.substr(at_, end - at_);
    if (!is_float && text == "0" && end + 1 < source_.size() && std::string_view("xXoObB").find(source_[end]) < 6) {
      const int base = source_[end] == 'x' || source_[end] == 'X'   ? 16
                       : source_[end] == 'o' || source_[end] == 'O' ? 8
                                                                    : 2;
      std::size_t last = end + 1;
      const auto digit = [&](char c) {
        const int value = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : 99;
        return value < base;
      };
      while (last < source_.size() && (digit(source_[last]) || source_[last] == '_')) ++last;
      if (last > end + 1) {
        text = source_.substr(at_, last - at_);
        end = last;
      }
    } else if (!is_float && text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string::npos) {
      fail("\"" + text + "\" is not a number: it begins with 0", at_);
    }
    std::erase(text, '_');
    push(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, std::move(text));
    at_ = end;
    return true;
  }

  bool name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      std::size_t next = end;
      const char32_t c = next_code_point(source_, next);
      const bool fits = c == '_' || (c < 0x80 ? is_digit(static_cast<char>(c)) : c != 0xFFFD && is_alphabetic(c)) ||
                        (c < 0x80 && is_alphabetic(c));
      if (!fits) break;
      end = next;
    }
    if (end == at_) return false;
    push(Token::Kind::kName, source_.substr(at_, end - at_));
    at_ = end;
    return true;
  }

  bool string() {
    const char quote = source_[at_];
    if (quote != '"' && quote != '\'') return false;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a text is not closed with " + std::string(1, quote), at_);
    push(Token::Kind::kString, unescaped(at_ + 1, end));
    at_ = end + 1;
    return true;
  }

  /// Python's escapes in a text.
  std::string unescaped(std::size_t at, std::size_t end) {
    std::string made;
    while (at < end) {
      const char c = source_[at++];
      if (c != '\\' || at >= end) {
        made += c;
        continue;
      }
      const char escape = source_[at++];
      static constexpr std::string_view kLetters = "abfnrtv\\'\"\n", kMeanings = "\a\b\f\n\r\t\v\\'\"";
      if (const std::size_t found = kLetters.find(escape); found < kMeanings.size()) {
        made += kMeanings[found];
      } else if (escape == '\n') {
        continue;
      } else if (escape == 'x' || escape == 'u' || escape == 'U') {
        append_code_point(made, code(at, end, escape == 'x' ? 2 : escape == 'u' ? 4 : 8, 16));
      } else if (escape >= '0' && escape <= '7') {
        --at;
        std::size_t length = 0;
        while (length < 3 && at + length < end && source_[at + length] >= '0' && source_[at + length] <= '7') ++length;
        append_code_point(made, code(at, end, length, 8));
      } else if (escape == 'N') {
        fail("characters cannot be written by their names, write \\uXXXX", at - 2);
      } else {
        made += '\\';
        made += escape;
      }
    }
    return made;
  }

  char32_t code(std::size_t& at, std::size_t end, std::size_t length, unsigned base) {
    char32_t value = 0;
    const std::size_t begin = at;
    for (; at < begin + length; ++at) {
      const char c = at < end ? source_[at] : ' ';
      const unsigned digit = is_digit(c)            ? c - '0'
                             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                    : 99;
      if (digit >= base) fail("the escape needs " + std::to_string(length) + " digits", begin);
      value = value * base + digit;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail("the escape is not a character", begin);
    return value;
  }

  void operation(std::string& open) {
    const auto found =
        std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view name) { return starts(name, at_); });
    if (found == kOperators.end()) {
      const std::size_t length = std::max<std::size_t>(runner::core::utf8_length(source_, at_), 1);
      fail("an expression cannot contain " + runner::core::quote(source_.substr(at_, length)), at_);
    }
    if (*found == "(") open += ')';
    if (*found == "[") open += ']';
    if (*found == "{") open += '}';
    if (*found == ")" || *found == "]" || *found == "}") {
      if (open.empty()) fail("\"" + std::string(*found) + "\" closes nothing", at_);
      if (open.back() != (*found)[0]) {
        fail("\"" + std::string(*found) + "\" stands where \"" + open.back() + "\" was expected", at_);
      }
      open.pop_back();
    }
    push(Token::Kind::kOperator, std::string(*found));
    at_ += found->size();
  }

  std::string source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0, counted_ = 0;
  Place place_;
  bool line_starting_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(normalized(source)).run(); }

}  // namespace components::jinja
