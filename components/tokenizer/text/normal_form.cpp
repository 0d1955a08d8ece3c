#include "components/tokenizer/text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {
namespace {

// Hangul syllables are composed by arithmetic (The Unicode Standard, 3.12).
constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

int combining_class(char32_t c) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class; }

using Decomposed = std::array<utf8proc_int32_t, 32>;  // the longest is 18 characters

std::size_t decompose(char32_t c, bool compatible, Decomposed& into) {
  int boundary = 0;
  const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), into.data(), static_cast<utf8proc_ssize_t>(into.size()),
                              static_cast<utf8proc_option_t>(options), &boundary);
  if (count > 0) return static_cast<std::size_t>(count);
  into[0] = static_cast<utf8proc_int32_t>(c);
  return 1;
}

/// Pairs of characters that are one in form C. utf8proc keeps its own to itself, so they are taken from what it
/// decomposes: of `abc`, whose `ab` is one character, the pair is that one and `c`.
class Compositions {
 public:
  Compositions() {
    struct Composite {
      char32_t value;
      std::vector<char32_t> parts;
    };
    std::vector<Composite> composites;
    Decomposed parts;
    for (char32_t c = 0xC0; c < 0x30000; ++c) {
      if (c >= kSBase && c < kSBase + kSCount) continue;
      const std::size_t count = decompose(c, false, parts);
      if (count < 2) continue;
      std::array<utf8proc_int32_t, 32> composed = parts;
      const auto left = utf8proc_normalize_utf32(composed.data(), static_cast<utf8proc_ssize_t>(count),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
      if (left != 1 || composed[0] != static_cast<utf8proc_int32_t>(c)) continue;  // excluded from composition
      composites.push_back({c, {parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count)}});
    }
    std::stable_sort(composites.begin(), composites.end(),
                     [](const Composite& a, const Composite& b) { return a.parts.size() < b.parts.size(); });
    for (const Composite& composite : composites) {
      char32_t first = composite.parts[0];
      bool known = true;
      for (std::size_t i = 1; known && i + 1 < composite.parts.size(); ++i) {
        const auto longer = pairs_.find(key(first, composite.parts[i]));
        known = longer != pairs_.end();
        if (known) first = longer->second;
      }
      if (known) pairs_.emplace(key(first, composite.parts.back()), composite.value);
    }
  }

  /// 0 when they stay two.
  char32_t of(char32_t a, char32_t b) const {
    if (a >= kLBase && a < kLBase + kLCount && b >= kVBase && b < kVBase + kVCount) {
      return kSBase + ((a - kLBase) * kVCount + (b - kVBase)) * kTCount;
    }
    if (a >= kSBase && a < kSBase + kSCount && (a - kSBase) % kTCount == 0 && b > kTBase && b < kTBase + kTCount) {
      return a + (b - kTBase);
    }
    const auto found = pairs_.find(key(a, b));
    return found == pairs_.end() ? 0 : found->second;
  }

 private:
  static std::uint64_t key(char32_t a, char32_t b) { return static_cast<std::uint64_t>(a) << 32 | b; }
  std::unordered_map<std::uint64_t, char32_t> pairs_;
};

const Compositions& compositions() {
  static const Compositions all;
  return all;
}

std::vector<NewChar> decomposed(std::string_view text, bool compatible) {
  std::vector<NewChar> chars;
  chars.reserve(text.size());
  std::vector<int> classes;
  Decomposed parts;
  std::size_t run = 0;  // where the marks that may still change places begin
  std::vector<std::pair<int, NewChar>> marks;
  const auto sort_marks = [&] {
    if (chars.size() - run < 2) return void(run = chars.size());
    marks.clear();
    for (std::size_t i = run; i < chars.size(); ++i) marks.emplace_back(combining_class(chars[i].value), chars[i]);
    std::stable_sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = run; i < chars.size(); ++i) chars[i] = marks[i - run].second;
    run = chars.size();
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    at += point.length;
    const std::size_t count = decompose(point.value, compatible, parts);
    for (std::size_t i = 0; i < count; ++i) {
      const auto c = static_cast<char32_t>(parts[i]);
      if (c < 0x300 || combining_class(c) == 0) {
        sort_marks();
        chars.push_back({c, i == 0 ? 0 : 1});
        run = chars.size();
      } else {
        chars.push_back({c, i == 0 ? 0 : 1});
      }
    }
  }
  sort_marks();
  return chars;
}

std::vector<NewChar> composed(const std::vector<NewChar>& chars) {
  const Compositions& pairs = compositions();
  std::vector<NewChar> out;
  out.reserve(chars.size());
  std::size_t starter = 0;  // of `out`
  bool have_starter = false;
  int last_class = 0;  // of what stands behind the starter; 0 when nothing does
  for (const NewChar& c : chars) {
    const int own_class = c.value < 0x300 ? 0 : combining_class(c.value);
    if (have_starter && (last_class == 0 || last_class < own_class)) {
      const char32_t one = pairs.of(out[starter].value, c.value);
      if (one != 0) {
        out[starter] = {one, out[starter].change + c.change - 1};
        continue;
      }
    }
    if (own_class == 0) {
      starter = out.size();
      have_starter = true;
    }
    last_class = own_class;
    out.push_back(c);
  }
  return out;
}

}  // namespace

bool surely_normal(std::string_view text, NormalForm form) {
  // Form C knows no change below U+0300, the others none in ASCII.
  const unsigned char first_doubtful = form == NormalForm::kC ? 0xCC : 0x80;
  return std::none_of(text.begin(), text.end(),
                      [&](char byte) { return static_cast<unsigned char>(byte) >= first_doubtful; });
}

std::vector<NewChar> normalized(std::string_view text, NormalForm form) {
  std::vector<NewChar> chars = decomposed(text, form == NormalForm::kKC || form == NormalForm::kKD);
  return form == NormalForm::kC || form == NormalForm::kKC ? composed(chars) : chars;
}

}  // namespace components::tokenizer
