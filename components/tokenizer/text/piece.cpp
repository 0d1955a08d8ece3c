#include "components/tokenizer/text/piece.h"

#include <algorithm>
#include <utility>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {

Piece Pieces::slice(const Piece& piece, std::size_t begin, std::size_t end) {
  Piece part;
  part.text = piece.text.substr(begin, end - begin);
  part.source = piece.source == nullptr ? nullptr : piece.source + begin;
  part.begin = piece.source == nullptr || begin == end ? piece.begin + begin : piece.source[begin].begin;
  return part;
}

Source Pieces::source_of(const Piece& piece, std::size_t at) const {
  if (piece.source != nullptr) return piece.source[at];
  std::size_t begin = piece.begin + at;
  while (begin > 0 && (static_cast<unsigned char>(text_[begin]) & 0xC0) == 0x80) --begin;
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + utf8_size(text_[begin]))};
}

void Pieces::set(Piece& piece, std::string text, std::vector<Source> sources) {
  piece.text = texts_.emplace_back(std::move(text));
  piece.source = track_ ? sources_.emplace_back(std::move(sources)).data() : nullptr;
}

void Pieces::transform(Piece& piece, const std::vector<NewChar>& chars, std::size_t skipped) {
  rewrite(piece, piece.text.size(), chars, skipped);
}

void Pieces::replace_start(Piece& piece, std::size_t end, const std::vector<NewChar>& chars) {
  rewrite(piece, end, chars, 0);
}

void Pieces::rewrite(Piece& piece, std::size_t end, const std::vector<NewChar>& chars, std::size_t skipped) {
  std::string text;
  std::vector<Source> sources;
  text.reserve(piece.text.size() + 8);
  const std::size_t size = piece.text.size();
  const auto step = [&](std::size_t& at) {
    if (at < size) at = std::min(size, at + utf8_size(piece.text[at]));
  };
  std::size_t at = 0;  // behind the characters that were replaced up to here
  for (std::size_t i = 0; i < skipped; ++i) step(at);
  for (const NewChar& c : chars) {
    const std::size_t before = text.size();
    append_utf8(text, c.value);
    if (track_) {
      Source source;
      if (c.change > 0) {
        if (at > 0) source = source_of(piece, at - 1);
        if (at == 0) source = {static_cast<std::uint32_t>(piece.begin), static_cast<std::uint32_t>(piece.begin)};
      } else if (size > 0) {
        source = source_of(piece, std::min(at, size - 1));
      }
      sources.insert(sources.end(), text.size() - before, source);
    }
    for (int i = c.change; i <= 0; ++i) step(at);
  }
  text += piece.text.substr(end);
  if (track_) {
    for (std::size_t i = end; i < size; ++i) sources.push_back(source_of(piece, i));
  }
  growth_->add(text.size());
  set(piece, std::move(text), std::move(sources));
}

void Pieces::prepend(Piece& piece, std::string_view prefix) {
  if (piece.text.empty() || prefix.empty()) return;
  // The first character of the prefix takes the place of the text's first one, which is added again behind it: all of
  // them come from there.
  std::vector<NewChar> chars;
  for (const char32_t c : code_points(prefix)) chars.push_back({c, chars.empty() ? 0 : 1});
  const CodePoint first = code_point_at(piece.text, 0);
  chars.push_back({first.value, 1});
  replace_start(piece, first.length, chars);
}

}  // namespace components::tokenizer
