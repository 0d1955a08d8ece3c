#include "runner/core/language/pattern.h"

#include <re2/re2.h>

#include <cctype>

#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

constexpr std::int64_t kMemoryBytesMax = 16 << 20;  // memory of one expression: program and search cache

/// `\d` would be the letter d here, but its author means a digit.
Result<void> refuse_other_dialects(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0) {
        return Failure{
            quote(pattern) + " uses \\" + pattern[i + 1] + ", which POSIX extended expressions do not support",
            "write [0-9] for \\d, [A-Za-z0-9_] for \\w"};
      }
      ++i;
    } else if (pattern[i + 1] == '?' && std::string_view("(*+?").find(pattern[i]) != std::string_view::npos) {
      return Failure{quote(pattern) + " uses " + pattern[i] + "?, which POSIX extended expressions do not support",
                     "use a plain group ( ) and a plain repetition"};
    }
  }
  return {};
}

re2::RE2::Options options(Pattern::Syntax syntax) {
  re2::RE2::Options options(syntax == Pattern::Syntax::kPosix ? re2::RE2::POSIX : re2::RE2::DefaultOptions);
  options.set_one_line(true);  // ^ and $ are the ends of the text
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_max_mem(kMemoryBytesMax);
  return options;
}

/// Without the library's quote of the expression, which may be all of it.
std::string reason(const re2::RE2& expression) {
  const std::string& text = expression.error();
  const std::string& quoted = expression.error_arg();
  if (quoted.empty() || !text.ends_with(": " + quoted)) return text;
  return text.substr(0, text.size() - quoted.size() - 2) + " at " + quote(quoted);
}

std::string hint_of(const re2::RE2& expression) {
  if (expression.error_arg().starts_with("(?")) return "write a plain group ( ): nothing can look ahead or back";
  switch (expression.error_code()) {
    case re2::RE2::ErrorMissingParen:
    case re2::RE2::ErrorUnexpectedParen: return "write \\( or \\) for a literal parenthesis";
    case re2::RE2::ErrorMissingBracket: return "write \\[ for a literal bracket";
    case re2::RE2::ErrorBadCharClass:
    case re2::RE2::ErrorBadCharRange: return "write a range in ascending order, such as [a-z]";
    case re2::RE2::ErrorBadEscape:
    case re2::RE2::ErrorTrailingBackslash: return "write \\\\ for a literal backslash";
    case re2::RE2::ErrorRepeatArgument:
    case re2::RE2::ErrorRepeatOp: return "write \\*, \\+ or \\? for a literal character";
    case re2::RE2::ErrorRepeatSize:
    case re2::RE2::ErrorPatternTooLarge: return "a repetition counts to at most 1000, multiplied by those around it";
    default: return "";
  }
}

}  // namespace

Result<Pattern> Pattern::make(const std::string& text, Syntax syntax) {
  if (text.empty() || text.find('\0') != std::string::npos) {
    return Failure{"an empty pattern matches everywhere", "write ^ for the beginning of a name"};
  }
  if (syntax == Syntax::kPosix) {
    if (const auto dialect = refuse_other_dialects(text); !dialect) return dialect.failure();
  }
  auto compiled = std::make_shared<const re2::RE2>(text, options(syntax));
  if (!compiled->ok()) {
    return Failure{quote(text) + " is not a regular expression: " + reason(*compiled), hint_of(*compiled)};
  }
  return Pattern(std::move(compiled));
}

bool Pattern::is_in(std::string_view text) const {
  return expression_->Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

bool Pattern::is_whole(std::string_view text) const {
  return expression_->Match({text.data(), text.size()}, 0, text.size(), re2::RE2::ANCHOR_BOTH, nullptr, 0);
}

std::vector<std::string_view> Pattern::find(std::string_view text, std::size_t from) const {
  std::vector<re2::StringPiece> parts(static_cast<std::size_t>(groups()) + 1);
  if (!expression_->Match({text.data(), text.size()}, from, text.size(), re2::RE2::UNANCHORED, parts.data(),
                          static_cast<int>(parts.size()))) {
    return {};
  }
  std::vector<std::string_view> match;
  for (const re2::StringPiece& part : parts) match.emplace_back(part.data(), part.size());
  return match;
}

int Pattern::groups() const { return expression_->NumberOfCapturingGroups(); }

}  // namespace runner::core
