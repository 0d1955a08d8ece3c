#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace components::tokenizer {

/// What a SentencePiece model file holds (sentencepiece_model.proto of SentencePiece), as far as it encodes.
struct SentencePieceModel {
  enum class Kind { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::kNormal;
  };
  std::vector<Piece> pieces;  ///< by id

  std::int64_t model_type = 1;  ///< 1 unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false;
  bool blank_behind = false;  ///< of a word, not before it
  std::int64_t unk_id = 0, bos_id = 1, eos_id = 2, pad_id = -1;
  std::string unk_surface = " \xE2\x81\x87 ";  ///< what an unknown piece is decoded to

  std::string charsmap;  ///< of its normalizer: a trie and texts
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool denormalizes = false;  ///< has rules for decoded text
};

/// Throws RunError that names file and field.
SentencePieceModel read_sentencepiece_model(std::string_view bytes, const std::string& file);

}  // namespace components::tokenizer
