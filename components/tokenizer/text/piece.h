#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "components/tokenizer/text/growth.h"

namespace components::tokenizer {

/// Bytes [begin, end) of the text that is encoded.
struct Source {
  std::uint32_t begin = 0, end = 0;
};

/// A part of the text on its way to tokens: what normalizers have made of it, and where each byte comes from.
struct Piece {
  std::string_view text;           ///< valid UTF-8
  const Source* source = nullptr;  ///< of each byte of `text`; null: byte i is byte begin + i of what is encoded
  std::size_t begin = 0;           ///< where it begins in what is encoded
  std::int32_t token = -1;         ///< an added token; nothing changes or splits it any more

  bool done() const { return token >= 0; }
};

/// A character that a normalizer writes. `change`: 1 for one that is added, 0 for one that replaces a character, -n for
/// one that replaces n + 1 of them.
struct NewChar {
  char32_t value;
  int change;
};

/// The pieces of one text, and the memory of those that normalizers made.
class Pieces {
 public:
  /// `track`: keep where bytes come from. Without it `begin` alone is right, up to what is added. `growth`: of the
  /// stage that they go through, see enter().
  Pieces(std::string_view text, bool track, Growth& growth) : text_(text), track_(track), growth_(&growth) {
    if (!text.empty()) list.push_back({text});
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::vector<Piece> list;  ///< in order, none empty

  std::string_view text() const { return text_; }
  bool track() const { return track_; }
  /// The next stage begins. RunError of those below when it makes too much of the text.
  void enter(Growth& growth) { growth_ = &growth; }
  Growth& growth() { return *growth_; }

  /// Bytes [begin, end) of a piece.
  static Piece slice(const Piece& piece, std::size_t begin, std::size_t end);

  /// The text that comes from `piece`, all of it replaced but the first `skipped` characters, which go.
  void transform(Piece& piece, const std::vector<NewChar>& chars, std::size_t skipped = 0);
  /// `chars` in place of the first byte of `piece` up to `end`.
  void replace_start(Piece& piece, std::size_t end, const std::vector<NewChar>& chars);
  /// Puts `prefix` before the text. Does nothing to an empty piece.
  void prepend(Piece& piece, std::string_view prefix);
  /// Keeps a text that was made, with a source for each byte if they are tracked. Its growth is already counted.
  void set(Piece& piece, std::string text, std::vector<Source> sources);

  /// Source of byte `at` of a piece: the whole character it belongs to.
  Source source_of(const Piece& piece, std::size_t at) const;

 private:
  void rewrite(Piece& piece, std::size_t end, const std::vector<NewChar>& chars, std::size_t skipped);

  std::string_view text_;
  bool track_;
  Growth* growth_;
  std::deque<std::string> texts_;
  std::deque<std::vector<Source>> sources_;
};

}  // namespace components::tokenizer
