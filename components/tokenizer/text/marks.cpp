#include "components/tokenizer/text/marks.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace components::tokenizer {
namespace {

struct CharRange {
  char32_t first, last;
};

// What has become a mark since. Between two of them lie no earlier ones.
constexpr std::array<CharRange, 31> kNoAccents = {
    {{0x7FD, 0x7FD},     {0x898, 0x8E1},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},     {0xB55, 0xB55},
     {0xC04, 0xC3C},     {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
     {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},
     {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2},
     {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x1133B, 0x1133B}, {0x11438, 0x1145E},
     {0x1182F, 0x11EF4}, {0x16F4F, 0x16F4F}, {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF46}, {0x1E000, 0x1E2EF},
     {0x1E944, 0x1E94A}}};
constexpr std::array<CharRange, 32> kNoMarks = {
    {{0x7FD, 0x7FD},     {0x898, 0x8D3},     {0x9FE, 0x9FE},     {0xAFA, 0xAFF},     {0xB55, 0xB55},
     {0xC04, 0xC3C},     {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
     {0x1715, 0x1715},   {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},
     {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0x10D24, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2},
     {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
     {0x1182C, 0x11A99}, {0x11D31, 0x11EF6}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FF1},
     {0x1CF00, 0x1CF46}, {0x1E130, 0x1E2EF}}};
constexpr std::array<CharRange, 4> kNoOthers = {
    {{0x890, 0x891}, {0x8E2, 0x8E2}, {0x110CD, 0x110CD}, {0x13430, 0x1345F}}};

template <std::size_t N>
bool is_in(const std::array<CharRange, N>& ranges, char32_t c) {
  const auto at = std::lower_bound(ranges.begin(), ranges.end(), c,
                                   [](const CharRange& range, char32_t wanted) { return range.last < wanted; });
  return at != ranges.end() && at->first <= c;
}

int category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

}  // namespace

bool is_accent(char32_t c) {
  if (c < 0x300) return false;
  return (category(c) == UTF8PROC_CATEGORY_MN && !is_in(kNoAccents, c)) || c == 0x1734;
}

bool is_mark(char32_t c) {
  if (c < 0x300) return false;
  const int own = category(c);
  const bool mark = own == UTF8PROC_CATEGORY_MN || own == UTF8PROC_CATEGORY_MC || own == UTF8PROC_CATEGORY_ME;
  return (mark && !is_in(kNoMarks, c)) || c == 0x1CF2 || c == 0x1CF3;
}

bool is_other(char32_t c) {
  const int own = category(c);
  const bool other = own == UTF8PROC_CATEGORY_CC || own == UTF8PROC_CATEGORY_CF || own == UTF8PROC_CATEGORY_CO;
  return other && !is_in(kNoOthers, c);
}

}  // namespace components::tokenizer
