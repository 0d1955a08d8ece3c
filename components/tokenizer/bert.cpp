#include "components/tokenizer/bert.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "components/tokenizer/text/marks.h"
#include "components/tokenizer/text/unicode.h"

namespace components::tokenizer {
namespace {

struct CharRange {
  char32_t first, last;
};

// The blocks of the library, which lacks 2B820 to 2B91F.
constexpr std::array<CharRange, 7> kChinese = {{{0x3400, 0x4DBF},
                                                {0x4E00, 0x9FFF},
                                                {0xF900, 0xFAFF},
                                                {0x20000, 0x2A6DF},
                                                {0x2A700, 0x2B81F},
                                                {0x2B920, 0x2CEAF},
                                                {0x2F800, 0x2FA1F}}};

bool is_chinese(char32_t c) {
  return c >= 0x3400 && std::any_of(kChinese.begin(), kChinese.end(),
                                    [&](const CharRange& range) { return c >= range.first && c <= range.last; });
}

int combining_class(char32_t c) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class; }

/// All steps in one: each character that is written comes from the one that it is made of.
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalization& wanted)
      : wanted_(wanted), strips_(wanted.strip_accents.value_or(wanted.lowercase)) {
    for (char32_t c = 0; c < ascii_.size(); ++c) {
      char32_t result = c;
      if (wanted_.clean_text && c != 0x7F && c >= 0x09 && (c <= 0x0D ? c != 0x0B && c != 0x0C : c >= 0x20)) {
        if (c < 0x20) result = ' ';
      } else if (wanted_.clean_text) {
        result = kRemoved;
      }
      if (wanted_.lowercase && c >= 'A' && c <= 'Z') result = c - 'A' + 'a';
      ascii_[c] = static_cast<char>(result);
    }
  }

  void apply(Pieces& pieces, Piece& piece) const override {
    const std::string_view text = piece.text;
    const auto same = [&](char c) { return static_cast<unsigned char>(c) < 0x80 && ascii_of(c) == c; };
    if (std::all_of(text.begin(), text.end(), same)) return;
    Writer writer(pieces, piece, strips_);
    for (std::size_t at = 0; at < text.size();) {
      if (static_cast<unsigned char>(text[at]) < 0x80) {
        const char c = ascii_of(text[at]);
        if (c != static_cast<char>(kRemoved)) writer.put_ascii(c, at);
        ++at;
        continue;
      }
      const CodePoint point = code_point_at(text, at);
      write(point.value, at, writer);
      at += point.length;
    }
    writer.finish();
  }

 private:
  static constexpr char32_t kRemoved = 0xFF;

  /// The new text, and where each byte of it comes from. `sorts`: marks are in the order that form D gives them.
  class Writer {
   public:
    Writer(Pieces& pieces, Piece& piece, bool sorts)
        : pieces_(pieces), piece_(piece), sorts_(sorts), track_(pieces.track()) {
      text_.reserve(piece.text.size() + 8);
      if (track_) sources_.reserve(piece.text.size() + 8);
    }
    void put_ascii(char c, std::size_t at) {
      end_marks();
      text_ += c;
      if (track_) sources_.push_back(pieces_.source_of(piece_, at));
    }
    /// `adds`: the character at `at` has become another one already. `kept`: false for what takes part in the order,
    /// but is left out then.
    void put(char32_t c, std::size_t at, bool adds, bool kept) {
      const int own = !sorts_ || c < 0x300 ? 0 : combining_class(c);
      if (own == 0) {
        end_marks();
        last_ = at;
        if (kept) append(c, at);
        return;
      }
      marks_.push_back({own, c, adds, kept});
      if (!adds) places_.push_back(at);
    }
    void finish() {
      end_marks();
      pieces_.growth().add(text_.size());
      pieces_.set(piece_, std::move(text_), std::move(sources_));
    }

   private:
    struct Mark {
      int combining_class;
      char32_t value;
      bool adds, kept;
    };
    void append(char32_t c, std::size_t at) {
      append_utf8(text_, c);
      if (track_) sources_.resize(text_.size(), pieces_.source_of(piece_, at));
    }
    void end_marks() {
      if (marks_.empty()) return;
      std::stable_sort(marks_.begin(), marks_.end(),
                       [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
      // As the library has it, places stay in their order when marks do not.
      std::size_t next = 0;
      for (const Mark& mark : marks_) {
        if (!mark.adds) last_ = places_[next++];
        if (mark.kept) append(mark.value, last_);
      }
      marks_.clear();
      places_.clear();
    }

    Pieces& pieces_;
    Piece& piece_;
    bool sorts_, track_;
    std::string text_;
    std::vector<Source> sources_;
    std::vector<Mark> marks_;          // that no character follows yet
    std::vector<std::size_t> places_;  // of those that were characters of the text
    std::size_t last_ = 0;             // the place of what was written last
  };

  char ascii_of(char c) const { return ascii_[static_cast<unsigned char>(c)]; }

  void write(char32_t c, std::size_t at, Writer& writer) const {
    if (wanted_.clean_text) {
      if (c == 0xFFFD || is_other(c)) return;
      if (char_table().is(c, kSpace)) return writer.put_ascii(' ', at);
    }
    const bool apart = wanted_.chinese_chars && is_chinese(c);
    if (apart) writer.put_ascii(' ', at);
    if (strips_) {
      std::array<utf8proc_int32_t, 32> parts;  // the longest is 18 characters
      int boundary = 0;
      auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                           static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
      if (count <= 0) {
        count = 1;
        parts[0] = static_cast<utf8proc_int32_t>(c);
      }
      for (utf8proc_ssize_t i = 0; i < count; ++i) {
        const auto part = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
        lower(part, at, i > 0, !is_accent(part), writer);
      }
    } else {
      lower(c, at, false, true, writer);
    }
    if (apart) writer.put_ascii(' ', at);
  }

  void lower(char32_t c, std::size_t at, bool adds, bool kept, Writer& writer) const {
    if (!wanted_.lowercase) return writer.put(c, at, adds, kept);
    const auto one = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    writer.put(c == 0x130 ? U'i' : one, at, adds, kept);
    if (c == 0x130) writer.put(0x307, at, true, true);  // the one letter that becomes two: i and a dot above
  }

  BertNormalization wanted_;
  bool strips_;
  std::array<char, 128> ascii_;
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  void apply(Pieces& pieces) const override {
    std::vector<Piece> list;
    list.reserve(pieces.list.size() + pieces.text().size() / 4);
    const CharTable& table = char_table();
    for (const Piece& piece : pieces.list) {
      if (piece.done()) {
        list.push_back(piece);
        continue;
      }
      std::size_t begin = 0;
      const auto end_word = [&](std::size_t end) {
        if (end > begin) list.push_back(Pieces::slice(piece, begin, end));
      };
      for (std::size_t at = 0; at < piece.text.size();) {
        const CodePoint point = code_point_at(piece.text, at);
        const std::size_t end = at + point.length;
        if (table.is(point.value, kSpace)) {
          end_word(at);
          begin = end;
        } else if (table.is(point.value, kPunctuation)) {
          end_word(at);
          begin = at;
          end_word(end);
          begin = end;
        }
        at = end;
      }
      end_word(piece.text.size());
    }
    pieces.list = std::move(list);
  }
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalization& wanted) {
  return std::make_unique<BertNormalizer>(wanted);
}

std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() { return std::make_unique<BertPreTokenizer>(); }

}  // namespace components::tokenizer
