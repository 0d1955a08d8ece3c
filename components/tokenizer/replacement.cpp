#include "components/tokenizer/replacement.h"

#include <utility>
#include <vector>

#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {

std::unique_ptr<Pattern> read_pattern(const Fields& fields) {
  const Fields pattern = fields.object("pattern");
  if (const auto text = pattern.text_or_none("String")) return make_literal(*text);
  return make_pattern(pattern.text("Regex"), pattern.place("Regex"));
}

void Replacement::apply(Pieces& pieces, Piece& piece) const {
  std::vector<Range> matches;
  pattern_->find(piece.text, matches);
  if (matches.empty()) return;
  pieces.growth().add(size_after(piece.text.size(), matches));
  std::string text;
  std::vector<Source> sources;
  const auto keep = [&](std::size_t begin, std::size_t end) {
    text += piece.text.substr(begin, end - begin);
    for (std::size_t i = begin; pieces.track() && i < end; ++i) sources.push_back(pieces.source_of(piece, i));
  };
  std::size_t at = 0;
  for (const Range& match : matches) {
    keep(at, match.begin);
    text += content_;
    if (pieces.track()) {
      // All of it comes from the last character of the match.
      Source source = {static_cast<std::uint32_t>(piece.begin), static_cast<std::uint32_t>(piece.begin)};
      if (match.end > 0) source = pieces.source_of(piece, match.end - 1);
      sources.insert(sources.end(), content_.size(), source);
    }
    at = match.end;
  }
  keep(at, piece.text.size());
  pieces.set(piece, std::move(text), std::move(sources));
}

std::size_t Replacement::size_after(std::size_t size, const std::vector<Range>& matches) const {
  for (const Range& match : matches) size -= match.end - match.begin;
  return size + matches.size() * content_.size();
}

std::string Replacement::apply(const std::string& text, Growth& growth) const {
  std::vector<Range> matches;
  pattern_->find(text, matches);
  if (matches.empty()) return text;
  growth.add(size_after(text.size(), matches));
  std::string result;
  std::size_t at = 0;
  for (const Range& match : matches) {
    result.append(text, at, match.begin - at).append(content_);
    at = match.end;
  }
  return result.append(text, at);
}

}  // namespace components::tokenizer
