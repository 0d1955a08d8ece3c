#include "components/tokenizer/text/pattern.h"

#include <pcre2.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "components/tokenizer/text/known_patterns.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

constexpr std::uint32_t kStepsMax = 5'000'000;  // of one match
constexpr std::size_t kLengthMax = 10'000;      // bytes of an expression
constexpr double kSecondsMax = 5;               // of processor time for one text, and
constexpr double kSecondsPerByteMax = 5e-6;

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

/// An expression of Oniguruma as PCRE2 writes it. `problem` gets what has another meaning there and cannot be written.
std::string translated(const std::string& regex, std::string& problem) {
  std::string result;
  bool in_class = false;
  std::size_t class_begin = 0;
  const auto hex_digits = [&](std::size_t at) {
    return at + 4 <= regex.size() &&
           regex.find_first_not_of("0123456789abcdefABCDEF", at) >= std::min(at + 4, regex.size());
  };
  for (std::size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\' && i + 1 < regex.size()) {
      const char next = regex[++i];
      if (next == 'u' && hex_digits(i + 1)) {
        result += "\\x{" + regex.substr(i + 1, 4) + "}";
        i += 4;
      } else if (next == 'h' || next == 'H') {
        if (in_class && next == 'H') problem = "\\H in brackets";
        result += in_class ? "0-9a-fA-F" : next == 'h' ? "[0-9a-fA-F]" : "[^0-9a-fA-F]";
      } else if (std::strchr("KGOyYXNR", next) != nullptr) {
        problem = std::string("\\") + next;
      } else {
        result += c;
        result += next;
      }
      continue;
    }
    if (in_class) {
      if (c == '[' && !(i + 1 < regex.size() && regex[i + 1] == ':')) problem = "brackets in brackets";
      if (c == '&' && i + 1 < regex.size() && regex[i + 1] == '&') problem = "&& in brackets";
      if (c == '[' && i + 1 < regex.size() && regex[i + 1] == ':') {
        const auto end = regex.find(":]", i);
        if (end != std::string::npos) {
          result += regex.substr(i, end + 2 - i);
          i = end + 1;
          continue;
        }
      }
      const bool first = i == class_begin + 1 || (i == class_begin + 2 && regex[i - 1] == '^');
      if (c == ']' && !first) in_class = false;
    } else if (c == '[') {
      in_class = true;
      class_begin = i;
    } else if (c == '(' && regex.compare(i, 2, "(?") == 0) {
      // Options: its m is the s of others.
      std::size_t end = i + 2;
      while (end < regex.size() && std::strchr("imx-", regex[end]) != nullptr) ++end;
      if (end < regex.size() && end > i + 2 && (regex[end] == ')' || regex[end] == ':')) {
        for (; i < end; ++i) result += regex[i] == 'm' ? 's' : regex[i];
      }
    }
    result += regex[i];
  }
  return result;
}

class Regex final : public Pattern {
 public:
  Regex(const std::string& regex, std::string place) : place_(std::move(place)) {
    if (regex.size() > kLengthMax) {
      throw core_error("a pattern of " + std::to_string(regex.size()) + " bytes, more than " +
                       std::to_string(kLengthMax));
    }
    std::string problem;
    const std::string written = translated(regex, problem);
    if (!problem.empty()) {
      throw core_error("the pattern " + runner::core::quote(regex) + " has " + problem + ", which roux does not know");
    }
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    code_.reset(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(written.data()), written.size(), options, &error, &at, nullptr));
    if (!code_) {
      char why[256] = "";
      pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(why), sizeof why);
      throw core_error("the pattern " + runner::core::quote(regex) + " is wrong at byte " + std::to_string(at) + ": " +
                       why);
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // without it the pattern is interpreted
    limits_.reset(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(limits_.get(), kStepsMax);
    pcre2_set_depth_limit(limits_.get(), kStepsMax);
    pcre2_set_heap_limit(limits_.get(), 64 * 1024);  // kibibytes
  }

  void find(std::string_view text, std::vector<Range>& matches) const override {
    const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data.get());
    const double seconds_max = kSecondsMax + kSecondsPerByteMax * static_cast<double>(text.size());
    const double began = processor_seconds();
    std::size_t at = 0, last_end = std::string_view::npos;
    for (std::size_t count = 1; at <= text.size(); ++count) {
      const int status = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                     PCRE2_NO_UTF_CHECK, data.get(), limits_.get());
      if (status == PCRE2_ERROR_NOMATCH) return;
      if (status < 0 || (count % 16 == 0 && processor_seconds() - began > seconds_max)) {
        throw core_error("the pattern takes too long on this text, from byte " + std::to_string(at) + " on");
      }
      const Range range{found[0], found[1]};
      if (range.end < range.begin) throw core_error("the pattern ends a match before it begins");
      const bool empty = range.begin == range.end;
      // An empty match at the end of the last one does not count.
      if (!empty || range.begin != last_end) matches.push_back(range);
      last_end = range.end;
      at = range.end;
      if (empty) at += at < text.size() ? utf8_size(text[at]) : 1;
    }
  }

 private:
  runner::core::RunError core_error(const std::string& what) const {
    return runner::core::RunError(place_ + ": " + what);
  }

  std::string place_;
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_context, Free> limits_;
};

class Literal final : public Pattern {
 public:
  explicit Literal(std::string text) : literal_(std::move(text)) {}
  void find(std::string_view text, std::vector<Range>& matches) const override {
    if (literal_.empty()) return;
    for (auto at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size())) {
      matches.push_back({at, at + literal_.size()});
    }
  }

 private:
  std::string literal_;
};

}  // namespace

std::unique_ptr<Pattern> make_general_pattern(const std::string& regex, const std::string& place) {
  return std::make_unique<Regex>(regex, place);
}

std::unique_ptr<Pattern> make_pattern(const std::string& regex, const std::string& place) {
  if (auto known = known_pattern(regex)) return known;
  return make_general_pattern(regex, place);
}

std::unique_ptr<Pattern> make_literal(std::string text) { return std::make_unique<Literal>(std::move(text)); }

}  // namespace components::tokenizer
