#include "components/tokenizer/model/sentencepiece_model.h"

#include <cstring>

#include "components/tokenizer/text/vocabulary.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using runner::core::RunError;

/// Fields of a message in the wire format of protocol buffers.
class Message {
 public:
  Message(std::string_view bytes, const std::string& file, std::string name)
      : bytes_(bytes), file_(file), name_(std::move(name)) {}

  struct Field {
    std::uint64_t number = 0;
    std::uint64_t value = 0;      // of a number; of a float its bits
    std::string_view bytes = {};  // of a text or a message
  };

  /// False at the end.
  bool next(Field& field) {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    field = {tag >> 3};
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1: field.value = fixed(8); break;
      case 5: field.value = fixed(4); break;
      case 2: {
        const std::uint64_t size = varint();
        if (size > bytes_.size() - at_) throw damaged();
        field.bytes = bytes_.substr(at_, size);
        at_ += size;
        break;
      }
      default: throw damaged();
    }
    return true;
  }

 private:
  RunError damaged() const {
    return RunError(file_ + ": " + name_ + " is damaged at byte " + std::to_string(at_) +
                    ": not a SentencePiece model");
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) throw damaged();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    throw damaged();
  }
  std::uint64_t fixed(std::size_t size) {
    if (bytes_.size() - at_ < size) throw damaged();
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);
    at_ += size;
    return value;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::string name_;
  std::size_t at_ = 0;
};

std::int64_t as_int32(std::uint64_t value) { return static_cast<std::int32_t>(value); }

void read_piece(Message message, const std::string& place, SentencePieceModel& model) {
  SentencePieceModel::Piece piece;
  Message::Field field;
  while (message.next(field)) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) {
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&piece.score, &bits, sizeof bits);
    }
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6) throw RunError(place + ".type is none that roux knows");
      piece.kind = static_cast<SentencePieceModel::Kind>(field.value);
    }
  }
  if (piece.text.empty()) throw RunError(place + ".piece is empty");
  if (runner::core::find_invalid_utf8(piece.text) != std::string_view::npos) {
    throw RunError(place + ".piece is not UTF-8");
  }
  if (piece.score != piece.score) throw RunError(place + ".score is not a number");
  model.pieces.push_back(std::move(piece));
}

void read_trainer(Message message, SentencePieceModel& model) {
  Message::Field field;
  while (message.next(field)) {
    switch (field.number) {
      case 3: model.model_type = as_int32(field.value); break;
      case 24: model.blank_behind = field.value != 0; break;
      case 35: model.byte_fallback = field.value != 0; break;
      case 40: model.unk_id = as_int32(field.value); break;
      case 41: model.bos_id = as_int32(field.value); break;
      case 42: model.eos_id = as_int32(field.value); break;
      case 43: model.pad_id = as_int32(field.value); break;
      case 44: model.unk_surface = field.bytes; break;
      default: break;
    }
  }
}

void read_normalizer(Message message, SentencePieceModel& model) {
  Message::Field field;
  while (message.next(field)) {
    switch (field.number) {
      case 2: model.charsmap = field.bytes; break;
      case 3: model.add_dummy_prefix = field.value != 0; break;
      case 4: model.remove_extra_whitespaces = field.value != 0; break;
      case 5: model.escape_whitespaces = field.value != 0; break;
      default: break;
    }
  }
}

}  // namespace

SentencePieceModel read_sentencepiece_model(std::string_view bytes, const std::string& file) {
  SentencePieceModel model;
  Message message(bytes, file, "the file");
  Message::Field field;
  while (message.next(field)) {
    if (field.number == 1) {
      const std::string place = file + ": pieces[" + std::to_string(model.pieces.size()) + "]";
      if (model.pieces.size() >= static_cast<std::size_t>(Vocabulary::kTokensMax)) {
        throw RunError(place + " is one piece more than " + std::to_string(Vocabulary::kTokensMax));
      }
      read_piece(Message(field.bytes, file, "pieces[" + std::to_string(model.pieces.size()) + "]"), place, model);
    }
    if (field.number == 2) read_trainer(Message(field.bytes, file, "trainer_spec"), model);
    if (field.number == 3) read_normalizer(Message(field.bytes, file, "normalizer_spec"), model);
    if (field.number == 5) {
      SentencePieceModel other;
      read_normalizer(Message(field.bytes, file, "denormalizer_spec"), other);
      model.denormalizes = !other.charsmap.empty();
    }
  }
  if (model.pieces.empty()) throw RunError(file + ": not a SentencePiece model: it has no pieces");
  return model;
}

}  // namespace components::tokenizer
