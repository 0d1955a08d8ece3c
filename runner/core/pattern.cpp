#include "runner/core/pattern.h"

#include <array>
#include <cctype>
#include <string_view>

namespace runner::core {
namespace {

/// `\d` would be the letter d here, and a digit for whoever wrote it.
Result<void> refuse_other_dialects(const std::string& pattern) {
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0) {
        return Failure{"\"" + pattern + "\" uses \\" + pattern[i + 1] + ", which POSIX extended expressions have not",
                       "write [0-9] for \\d, [A-Za-z0-9_] for \\w"};
      }
      ++i;
    } else if (pattern[i + 1] == '?' && std::string_view("(*+?").find(pattern[i]) != std::string_view::npos) {
      return Failure{"\"" + pattern + "\" uses " + pattern[i] + "?, which POSIX extended expressions have not",
                     "a plain group ( ) and a plain repetition do"};
    }
  }
  if (pattern.empty() || pattern.find('\0') != std::string::npos) {
    return Failure{"an empty pattern matches everywhere", "write ^ for the beginning of a name"};
  }
  return {};
}

std::string reason(int status, const regex_t& expression) {
  std::array<char, 256> words{};
  regerror(status, &expression, words.data(), words.size());
  std::string text = words.data();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

Result<Pattern> Pattern::make(const std::string& text) {
  if (const auto dialect = refuse_other_dialects(text); !dialect) return dialect.failure();
  auto compiled = std::make_unique<regex_t>();
  if (const int status = regcomp(compiled.get(), text.c_str(), REG_EXTENDED); status != 0) {
    return Failure{"\"" + text + "\" is no regular expression: " + reason(status, *compiled),
                   "a dot that means a dot is written \\."};
  }
  const auto release = [](const regex_t* expression) {
    regfree(const_cast<regex_t*>(expression));  // NOLINT: regfree() wants what it frees to be writable
    delete expression;
  };
  return Pattern(std::shared_ptr<const regex_t>(compiled.release(), release));
}

bool Pattern::is_in(const std::string& text) const {
  return regexec(expression_.get(), text.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace runner::core
