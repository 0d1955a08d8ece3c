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
  if (std::string_view(source_->text).substr(0, kMark.size()) == kMark) begin_ = kMark.size();
  offset_ = begin_;
}

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

}  // namespace runner::recipe
