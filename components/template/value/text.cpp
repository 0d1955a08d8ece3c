#include "components/template/value/text.h"

#include <utf8proc.h>

#include <algorithm>

#include "runner/core/text/utf8.h"

namespace components::jinja {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

utf8proc_int32_t point(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

void append_upper(std::string& into, char32_t c) {
  if (c == 0xDF) {
    into += "SS";
  } else {
    append_code_point(into, static_cast<char32_t>(utf8proc_toupper(point(c))));
  }
}

void append_lower(std::string& into, char32_t c) {
  append_code_point(into, static_cast<char32_t>(utf8proc_tolower(point(c))));
}

bool is_one_of(char32_t c, const std::string* characters) {
  if (!characters) return is_space(c);
  for (std::size_t at = 0; at < characters->size();) {
    if (next_code_point(*characters, at) == c) return true;
  }
  return false;
}

}  // namespace

void TextBuilder::add(const Text& part, std::size_t begin, std::size_t end) {
  const std::size_t base = text_.bytes.size();
  text_.bytes.append(part.bytes, begin, end - begin);
  // The first that ends behind `begin`: a text may have many, of which a character needs one.
  auto first = std::lower_bound(part.origins.begin(), part.origins.end(), begin,
                                [](const Origin& origin, std::size_t at) { return origin.end <= at; });
  for (; first != part.origins.end() && first->begin < end; ++first) {
    const Origin& origin = *first;
    Origin moved = origin;
    moved.begin = base + std::max(origin.begin, begin) - begin;
    moved.end = base + std::min(origin.end, end) - begin;
    text_.origins.push_back(moved);
  }
}

void TextBuilder::add_from(std::string_view bytes, std::int32_t message) {
  const std::size_t begin = size();
  add(bytes);
  if (message != kNoMessage && size() > begin) text_.origins.push_back({begin, size(), message, true});
}

void TextBuilder::own(std::size_t begin, std::size_t end, std::int32_t message, bool in_generation) {
  if (begin >= end || (message == kNoMessage && !in_generation)) return;
  std::vector<Origin>& origins = text_.origins;
  if (!origins.empty() && origins.back().end == begin && origins.back().message == message && !origins.back().by_text &&
      origins.back().in_generation == in_generation) {
    origins.back().end = end;
  } else {
    origins.push_back({begin, end, message, false, in_generation, message});
  }
}

void TextBuilder::add_left(const Text& part, std::int32_t message) {
  const std::size_t base = size();
  text_.bytes += part.bytes;
  std::size_t at = 0;
  const auto leave = [&](std::size_t begin, std::size_t end) {
    if (begin < end) text_.origins.push_back({base + begin, base + end, message, false, false, message, true});
  };
  for (Origin origin : part.origins) {
    leave(at, origin.begin);
    at = origin.end;
    // What was written in a pass, as the text of a macro is, stays written there; what an earlier one left, left by it.
    if (origin.pass == kNoMessage) {
      origin.pass = message;
      origin.is_left = true;
    }
    if (origin.message == kNoMessage) origin.message = message;
    origin.begin += base;
    origin.end += base;
    text_.origins.push_back(origin);
  }
  leave(at, part.bytes.size());
}

void TextBuilder::add_owned(const Text& part, std::int32_t message, bool in_generation) {
  const std::size_t base = size();
  text_.bytes += part.bytes;
  std::size_t at = 0;
  for (Origin origin : part.origins) {
    own(base + at, base + origin.begin, message, in_generation);
    at = origin.end;
    if (origin.is_left && message != kNoMessage) {
      if (!origin.by_text) origin.message = message;
      origin.pass = message;
    }
    if (origin.message == kNoMessage) origin.message = message;
    if (origin.pass == kNoMessage) origin.pass = message;
    origin.is_left = false;
    origin.in_generation = origin.in_generation || in_generation;
    origin.begin += base;
    origin.end += base;
    text_.origins.push_back(origin);
  }
  own(base + at, size(), message, in_generation);
}

void TextBuilder::own_from(std::size_t begin, std::int32_t message, bool in_generation) {
  Text later{text_.bytes.substr(begin)};
  std::vector<Origin>& origins = text_.origins;
  while (!origins.empty() && origins.back().end > begin) {
    Origin moved = origins.back();
    moved.begin = std::max(moved.begin, begin) - begin;
    moved.end -= begin;
    later.origins.push_back(moved);
    if (origins.back().begin < begin) {
      origins.back().end = begin;
      break;
    }
    origins.pop_back();
  }
  std::reverse(later.origins.begin(), later.origins.end());
  text_.bytes.resize(begin);
  add_owned(later, message, in_generation);
}

Value part_of(const Text& text, std::size_t begin, std::size_t end) {
  TextBuilder builder;
  if (begin < end) builder.add(text, begin, end);
  Text part = builder.take();
  part.is_markup = text.is_markup;
  return Value::text(std::move(part));
}

Value made_from(const Value& source, std::string bytes) {
  Text text{std::move(bytes)};
  if (source.is_text()) {
    text.is_markup = source.as_text().is_markup;
    if (!source.as_text().origins.empty() && !text.bytes.empty()) {
      const std::vector<Origin>& origins = source.as_text().origins;
      text.origins = {origins[0]};
      const auto is_same = [&origins](const Origin& origin) { return origin.part == origins[0].part; };
      if (!std::all_of(origins.begin(), origins.end(), is_same)) text.origins[0].part = Part::kAnswer;
      text.origins[0].begin = 0;
      text.origins[0].end = text.bytes.size();
    }
  } else if (const std::int32_t message = message_of(source); message != kNoMessage && !text.bytes.empty()) {
    text.origins = {{0, text.bytes.size(), message, true}};
  }
  return Value::text(std::move(text));
}

std::size_t code_points(std::string_view text) {
  return is_ascii(text) ? text.size() : runner::core::count_code_points(text);
}

std::size_t byte_of(std::string_view text, std::size_t code_point) {
  if (is_ascii(text)) return std::min(code_point, text.size());
  std::size_t at = 0;
  for (; code_point > 0 && at < text.size(); --code_point) next_code_point(text, at);
  return at;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x80) return static_cast<unsigned char>(text[at++]);
  const std::size_t length = runner::core::utf8_length(text, at);
  char32_t c = 0xFFFD;
  if (length == 2) c = (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU);
  if (length == 3) c = (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
  if (length == 4) {
    c = (byte(0) & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U | (byte(3) & 0x3FU);
  }
  at += std::max<std::size_t>(length, 1);
  return c;
}

void append_code_point(std::string& text, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(point(c), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alphabetic(char32_t c) {
  const auto category = utf8proc_category(point(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

std::size_t leading(std::string_view text, const std::string* characters) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_one_of(next_code_point(text, next), characters)) break;
    at = next;
  }
  return at;
}

std::size_t trailing(std::string_view text, const std::string* characters) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80) --begin;
    std::size_t at = begin;
    if (!is_one_of(next_code_point(text, at), characters) || at != end) break;
    end = begin;
  }
  return text.size() - end;
}

std::string upper(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) append_upper(made, next_code_point(text, at));
  return made;
}

std::string lower(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) append_lower(made, next_code_point(text, at));
  return made;
}

std::string capitalized(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const char32_t c = next_code_point(text, at);
    first ? append_code_point(made, static_cast<char32_t>(utf8proc_totitle(point(c)))) : append_lower(made, c);
  }
  return made;
}

std::string swapped_case(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    utf8proc_category(point(c)) == UTF8PROC_CATEGORY_LU ? append_lower(made, c) : append_upper(made, c);
  }
  return made;
}

std::string title(std::string_view text) {
  std::string made;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    inside ? append_lower(made, c) : append_code_point(made, static_cast<char32_t>(utf8proc_totitle(point(c))));
    inside = is_alphabetic(c);
  }
  return made;
}

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
      case '&': made += "&amp;"; break;
      case '<': made += "&lt;"; break;
      case '>': made += "&gt;"; break;
      case '\'': made += "&#39;"; break;
      case '"': made += "&#34;"; break;
      default: made += c;
    }
  }
  return made;
}

std::vector<std::pair<std::size_t, std::size_t>> words(std::string_view text, std::size_t splits_max) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  std::size_t at = leading(text);
  while (at < text.size()) {
    if (found.size() == splits_max) {
      found.emplace_back(at, text.size());
      break;
    }
    std::size_t end = at;
    while (end < text.size()) {
      std::size_t next = end;
      if (is_space(next_code_point(text, next))) break;
      end = next;
    }
    found.emplace_back(at, end);
    at = end + leading(text.substr(end));
  }
  return found;
}

}  // namespace components::jinja
