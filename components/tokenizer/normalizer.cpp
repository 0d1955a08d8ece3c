#include "components/tokenizer/normalizer.h"

#include <utf8proc.h>

#include <optional>
#include <utility>
#include <vector>

#include "components/tokenizer/bert.h"
#include "components/tokenizer/replacement.h"
#include "components/tokenizer/text/byte_chars.h"
#include "components/tokenizer/text/charsmap.h"
#include "components/tokenizer/text/marks.h"
#include "components/tokenizer/text/normal_form.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/picture/base64.h"
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

/// The texts of a SentencePiece model in place of others (the library's `Precompiled`): a short cluster of characters
/// that begins with a text of the map is replaced as a whole, else each of its characters.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const Fields& fields) {
    const auto map = runner::core::base64_bytes(fields.text("precompiled_charsmap"));
    if (!map) throw fields.error("precompiled_charsmap", "is not base64");
    map_ = Charsmap(*map, fields.place("precompiled_charsmap"));
  }
  void apply(Pieces& pieces, Piece& piece) const override {
    std::vector<NewChar> chars;
    chars.reserve(piece.text.size());
    bool changed = false;
    const auto replace = [&](std::string_view part) {
      const auto [length, written] = map_.find_shortest(part.substr(0, part.find('\0')));
      if (length == 0) return false;
      const std::vector<char32_t> before = code_points(part), after = code_points(written);
      const int more = static_cast<int>(after.size()) - static_cast<int>(before.size());
      const std::size_t added = more > 0 ? static_cast<std::size_t>(more) : 0;
      for (std::size_t i = 0; i < after.size(); ++i) chars.push_back({after[i], i + added >= after.size() ? 1 : 0});
      if (more < 0 && !chars.empty()) chars.back().change += more;
      changed = true;
      return true;
    };
    const std::string_view text = piece.text;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + utf8_size(text[at]);
      for (utf8proc_int32_t state = 0; end < text.size(); end += utf8_size(text[end])) {
        const auto before = static_cast<utf8proc_int32_t>(code_point_at(text, last_of(text, end)).value);
        if (utf8proc_grapheme_break_stateful(before, static_cast<utf8proc_int32_t>(code_point_at(text, end).value),
                                             &state)) {
          break;
        }
      }
      if (end - at >= kClusterBytes || !replace(text.substr(at, end - at))) {
        for (std::size_t i = at; i < end;) {
          const CodePoint point = code_point_at(text, i);
          if (!replace(text.substr(i, point.length))) chars.push_back({point.value, 0});
          i += point.length;
        }
      }
      at = end;
    }
    if (changed) pieces.transform(piece, chars);
  }

 private:
  static constexpr std::size_t kClusterBytes = 6;  // clusters this long are matched one character at a time

  static std::size_t last_of(std::string_view text, std::size_t end) {
    do --end;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    return end;
  }

  Charsmap map_;
};

/// Leaves out some characters, and writes others in place of some.
class CharFilter final : public Normalizer {
 public:
  /// `change`: what to write for a character; nothing to leave it out.
  explicit CharFilter(std::optional<char32_t> (*change)(char32_t)) : change_(change) {}
  void apply(Pieces& pieces, Piece& piece) const override {
    std::vector<NewChar> chars;
    chars.reserve(piece.text.size());
    std::size_t skipped = 0;
    bool changed = false;
    for (const char32_t c : code_points(piece.text)) {
      const auto written = change_(c);
      changed = changed || written != c;
      if (written) {
        chars.push_back({*written, 0});
      } else if (chars.empty()) {
        ++skipped;
      } else {
        --chars.back().change;
      }
    }
    if (changed) pieces.transform(piece, chars, skipped);
  }

 private:
  std::optional<char32_t> (*change_)(char32_t);
};

/// The library's `Nmt`.
std::optional<char32_t> without_controls(char32_t c) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) {
    return std::nullopt;
  }
  const bool blank = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return blank ? U' ' : c;
}

std::optional<char32_t> without_marks(char32_t c) { return is_mark(c) ? std::nullopt : std::optional(c); }

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
  if (type == "StripAccents") return std::make_unique<CharFilter>(&without_marks);
  if (type == "Nmt") return std::make_unique<CharFilter>(&without_controls);
  if (type == "Precompiled") return std::make_unique<Precompiled>(fields);
  if (type == "BertNormalizer") {
    BertNormalization wanted;
    wanted.clean_text = fields.flag("clean_text", true);
    wanted.chinese_chars = fields.flag("handle_chinese_chars", true);
    if (fields.has("strip_accents")) wanted.strip_accents = fields.flag("strip_accents", false);
    wanted.lowercase = fields.flag("lowercase", true);
    return make_bert_normalizer(wanted);
  }
  throw fields.error("type", "is " + runner::core::quote(type) + ", a normalizer that roux does not know",
                     "it knows Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Nmt, Lowercase, Strip, StripAccents, "
                     "Precompiled, BertNormalizer and ByteLevel");
}

}  // namespace components::tokenizer
