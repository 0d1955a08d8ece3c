#include "runner/recipe/source_text.h"

#include <algorithm>
#include <cstdio>

#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::recipe {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

std::string hex(unsigned char byte) {
  char buffer[8];
  std::snprintf(buffer, sizeof buffer, "0x%02x", byte);
  return buffer;
}

bool is_utf16(std::string_view text) { return text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF"; }

// One invalid byte is a mistake, many mean another kind of file.
bool is_binary(std::string_view text) {
  constexpr std::size_t kLookedAt = 4096;
  text = text.substr(0, kLookedAt);
  const auto strange = std::count_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0 || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r');
  });
  return strange > 3 && strange * 30 > static_cast<std::ptrdiff_t>(text.size());
}

}  // namespace

SourceText::SourceText(std::shared_ptr<const core::Source> source) : source_(std::move(source)) {
  begin_ = begin_of(source_->text);
  offset_ = begin_;
}

std::size_t SourceText::begin_of(std::string_view file) { return file.starts_with(kMark) ? kMark.size() : 0; }

core::Location SourceText::location(std::size_t begin, std::size_t end) {
  const std::string_view text = source_->text;
  begin = std::clamp(begin, begin_, text.size());
  if (begin < offset_) {
    offset_ = begin_;
    line_ = column_ = 1;
  }
  while (offset_ < begin) {
    if (text[offset_] == '\n') {
      ++line_;
      column_ = 1;
      ++offset_;
    } else {
      ++column_;
      offset_ += std::max<std::size_t>(core::utf8_length(text, offset_), 1);
    }
  }
  // A longer underline does not help, and a line may have megabytes.
  constexpr std::size_t kWidthBytesMax = 400;
  end = std::clamp(end, begin, std::min(text.size(), begin + kWidthBytesMax));
  end = begin + std::min(text.substr(begin, end - begin).find_first_of("\r\n"), end - begin);
  const std::size_t width = core::count_code_points(text.substr(begin, end - begin));
  return core::Location{source_, line_, column_, static_cast<int>(std::max<std::size_t>(width, 1))};
}

bool check_text(SourceText& text, const Limits& limits, core::Diagnostics& diagnostics) {
  const std::string_view bytes = text.text();
  const core::Location whole{text.location(0, 0).source, 0, 0, 1};
  if (static_cast<std::int64_t>(bytes.size()) > limits.file_bytes_max) {
    diagnostics.error(whole, "the file has " + core::format_bytes(static_cast<std::int64_t>(bytes.size())) +
                                 ", a recipe has at most " + core::format_bytes(limits.file_bytes_max));
    return false;
  }
  if (is_utf16(bytes)) {
    diagnostics.error(whole, "the file is UTF-16, a recipe is UTF-8", "save it again with the encoding UTF-8");
    return false;
  }
  if (is_binary(bytes)) {
    diagnostics.error(whole, "this is a binary file, not a recipe", "a recipe is text: .yaml, .json or .jsonnet");
    return false;
  }
  for (std::size_t at = text.begin(); at < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    const std::size_t length = core::utf8_length(bytes, at);
    if (length == 0) {
      diagnostics.error(text.location(at, at + 1), "the byte " + hex(byte) + " is not valid UTF-8",
                        "save the file again with the encoding UTF-8");
      return false;
    }
    const bool is_space = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !is_space) || byte == 0x7F) {
      const bool binary = byte == 0;
      diagnostics.error(text.location(at, at + 1),
                        binary ? "a NUL byte: this is a binary file, not a recipe"
                               : "the control byte " + hex(byte) + " is not allowed in a recipe",
                        binary ? "a recipe is text: .yaml, .json or .jsonnet"
                               : "remove it, or write it as \"\\x" + hex(byte).substr(2) + "\" in double quotes");
      return false;
    }
    at += length;
  }
  return true;
}

std::string strange_space(std::string_view text, std::size_t at) {
  struct Strange {
    std::string_view bytes;
    const char* name;
  };
  static constexpr Strange kStrange[] = {
      {"\u00A0", "a no-break space (U+00A0)"},    {"\u2003", "an em space (U+2003)"},
      {"\u2002", "an en space (U+2002)"},         {"\u2007", "a figure space (U+2007)"},
      {"\u2009", "a thin space (U+2009)"},        {"\u200A", "a hair space (U+200A)"},
      {"\u200B", "a zero-width space (U+200B)"},  {"\u200C", "a zero-width non-joiner (U+200C)"},
      {"\u200D", "a zero-width joiner (U+200D)"}, {"\u202F", "a narrow no-break space (U+202F)"},
      {"\u2060", "a word joiner (U+2060)"},       {"\u3000", "an ideographic space (U+3000)"},
      {"\uFEFF", "a byte-order mark (U+FEFF)"},
  };
  for (const Strange& one : kStrange) {
    if (text.substr(at).starts_with(one.bytes)) return one.name;
  }
  return "";
}

std::size_t find_strange_space(std::string_view line) {
  bool expects_space = true;  // in the indentation, or behind a mark
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (expects_space && !strange_space(line, at).empty()) return at;
    expects_space = (expects_space && line[at] == ' ') || line[at] == ':' || line[at] == '-';
  }
  return std::string_view::npos;
}

}  // namespace runner::recipe
