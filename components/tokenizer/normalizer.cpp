#include "components/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <utility>
#include <vector>

#include "components/tokenizer/replacement.h"
#include "components/tokenizer/text/byte_chars.h"
#include "components/tokenizer/text/normal_form.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

class InOrder final : public Normalizer {
 public:
  explicit InOrder(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces, Piece& piece) const override {
    for (const auto& part : parts_) part->apply(pieces, piece);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(Pieces& pieces, Piece& piece) const override { pieces.prepend(piece, prefix_); }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Fields& fields) : replacement_(fields) {}
  void apply(Pieces& pieces, Piece& piece) const override { replacement_.apply(pieces, piece); }

 private:
  Replacement replacement_;
};

class Form final : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(Pieces& pieces, Piece& piece) const override {
    if (!surely_normal(piece.text, form_)) pieces.transform(piece, normalized(piece.text, form_));
  }

 private:
  NormalForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(Pieces& pieces, Piece& piece) const override {
    std::vector<NewChar> chars;
    chars.reserve(piece.text.size());
    for (const char32_t c : code_points(piece.text)) {
      if (c == 0x130) {  // the one letter that becomes two: i and a dot above
        chars.push_back({'i', 0});
        chars.push_back({0x307, 1});
      } else {
        chars.push_back({static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), 0});
      }
    }
    pieces.transform(piece, chars);
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(Pieces& pieces, Piece& piece) const override {
    const std::vector<char32_t> chars = code_points(piece.text);
    const auto blank = [&](std::size_t i) { return char_table().is(chars[i], kSpace); };
    std::size_t begin = 0, end = chars.size();
    while (left_ && begin < end && blank(begin)) ++begin;
    while (right_ && end > begin && blank(end - 1)) --end;
    if (begin == 0 && end == chars.size()) return;
    const std::size_t begin_byte = byte_at(piece.text, begin), end_byte = byte_at(piece.text, end);
    // Not slice(): the piece still begins where it did.
    if (piece.source != nullptr) {
      piece.source += begin_byte;
      piece.text = piece.text.substr(begin_byte, end_byte - begin_byte);
      return;
    }
    std::vector<Source> sources;
    for (std::size_t i = begin_byte; pieces.track() && i < end_byte; ++i) sources.push_back(pieces.source_of(piece, i));
    pieces.growth().add(end_byte - begin_byte);
    pieces.set(piece, std::string(piece.text.substr(begin_byte, end_byte - begin_byte)), std::move(sources));
  }

 private:
  static std::size_t byte_at(std::string_view text, std::size_t chars) {
    std::size_t at = 0;
    for (; chars > 0; --chars) at += utf8_size(text[at]);
    return at;
  }

  bool left_, right_;
};

class ByteChars final : public Normalizer {
 public:
  void apply(Pieces& pieces, Piece& piece) const override { write_bytes_as_chars(pieces, piece); }
};

}  // namespace

void write_bytes_as_chars(Pieces& pieces, Piece& piece) {
  std::vector<NewChar> chars;
  chars.reserve(piece.text.size());
  for (const char byte : piece.text) {
    const bool first = (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    chars.push_back({char_of_byte(static_cast<std::uint8_t>(byte)), first ? 0 : 1});
  }
  pieces.transform(piece, chars);
}

std::unique_ptr<Normalizer> make_normalizer(const Fields& fields) {
  const std::string type = fields.text("type");
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const Fields& part : fields.objects("normalizers")) parts.push_back(make_normalizer(part));
    return std::make_unique<InOrder>(std::move(parts));
  }
  if (type == "Prepend") return std::make_unique<Prepend>(fields.text("prepend"));
  if (type == "Replace") return std::make_unique<Replace>(fields);
  if (type == "NFC") return std::make_unique<Form>(NormalForm::kC);
  if (type == "NFD") return std::make_unique<Form>(NormalForm::kD);
  if (type == "NFKC") return std::make_unique<Form>(NormalForm::kKC);
  if (type == "NFKD") return std::make_unique<Form>(NormalForm::kKD);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "ByteLevel") return std::make_unique<ByteChars>();
  if (type == "Strip") {
    return std::make_unique<Strip>(fields.flag("strip_left", true), fields.flag("strip_right", true));
  }
  throw fields.error("type", "is " + runner::core::quote(type) + ", a normalizer that roux does not know",
                     "it knows Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip and ByteLevel");
}

}  // namespace components::tokenizer
