#include "components/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "components/tokenizer/bert.h"
#include "components/tokenizer/normalizer.h"
#include "components/tokenizer/replacement.h"
#include "components/tokenizer/text/known_patterns.h"
#include "components/tokenizer/text/unicode.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

struct Part {
  Range range;
  bool match = false;
};

/// All of the text: the matches, and what lies between them.
void parts_of(std::string_view text, const std::vector<Range>& matches, bool invert, std::vector<Part>& parts) {
  parts.clear();
  std::size_t at = 0;
  for (const Range& match : matches) {
    if (match.begin > at) parts.push_back({{at, match.begin}, invert});
    parts.push_back({match, !invert});
    at = match.end;
  }
  if (at < text.size()) parts.push_back({{at, text.size()}, invert});
}

void arrange(std::vector<Part>& parts, Behavior behavior) {
  std::vector<Part> result;
  result.reserve(parts.size());
  const auto join_if = [&](auto joins) {
    for (const Part& part : parts) {
      if (!result.empty() && joins(result.back(), part)) {
        result.back().range.end = part.range.end;
        result.back().match = part.match;
      } else {
        result.push_back(part);
      }
    }
  };
  switch (behavior) {
    case Behavior::kIsolated: return;
    case Behavior::kRemoved: std::erase_if(parts, [](const Part& part) { return part.match; }); return;
    case Behavior::kMergedWithPrevious:
      join_if([](const Part& last, const Part& part) { return part.match && !last.match; });
      break;
    case Behavior::kMergedWithNext:
      join_if([](const Part& last, const Part& part) { return last.match && !part.match; });
      break;
    case Behavior::kContiguous:
      join_if([](const Part& last, const Part& part) { return part.match == last.match; });
      break;
  }
  parts = std::move(result);
}

class InOrder final : public PreTokenizer {
 public:
  explicit InOrder(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  void apply(Pieces& pieces) const override {
    for (const auto& part : parts_) part->apply(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

class Split final : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void apply(Pieces& pieces) const override { split(pieces, *pattern_, behavior_, invert_); }

 private:
  std::unique_ptr<Pattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(const Fields& fields, bool leave_bytes)
      : add_prefix_space_(fields.flag("add_prefix_space", true)), leave_bytes_(leave_bytes) {
    if (fields.flag("use_regex", true)) pattern_ = known_pattern(kGpt2Pattern);
  }
  void apply(Pieces& pieces) const override {
    for (Piece& piece : pieces.list) {
      if (add_prefix_space_ && !piece.done() && !piece.text.starts_with(' ')) pieces.prepend(piece, " ");
    }
    if (pattern_) split(pieces, *pattern_, Behavior::kIsolated);
    if (leave_bytes_) return;
    for (Piece& piece : pieces.list) {
      if (!piece.done()) write_bytes_as_chars(pieces, piece);
    }
  }

 private:
  bool add_prefix_space_, leave_bytes_;
  std::unique_ptr<Pattern> pattern_;
};

/// Characters of a class, each a match or all that are neighbours one.
class ClassPattern final : public Pattern {
 public:
  ClassPattern(CharClass wanted, bool runs) : wanted_(wanted), runs_(runs) {}
  void find(std::string_view text, std::vector<Range>& matches) const override {
    const CharTable& table = char_table();
    const std::size_t before = matches.size();
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      if (table.is(point.value, wanted_)) {
        if (runs_ && matches.size() > before && matches.back().end == at) {
          matches.back().end += point.length;
        } else {
          matches.push_back({at, at + point.length});
        }
      }
      at += point.length;
    }
  }

 private:
  CharClass wanted_;
  bool runs_;
};

/// `\w+|[^\w\s]+`.
class Words final : public Pattern {
 public:
  void find(std::string_view text, std::vector<Range>& matches) const override {
    const CharTable& table = char_table();
    int last = 0;  // kWord, 1 for other characters, 0 for white space
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      const int kind = table.is(point.value, kWord) ? kWord : table.is(point.value, kSpace) ? 0 : 1;
      if (kind != 0 && kind == last) {
        matches.back().end += point.length;
      } else if (kind != 0) {
        matches.push_back({at, at + point.length});
      }
      last = kind;
      at += point.length;
    }
  }
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { kAlways, kFirst, kNever };
  Metaspace(std::string replacement, Prepend prepend, bool splits)
      : replacement_(std::move(replacement)),
        prepend_(prepend),
        splits_(splits),
        blanks_(make_literal(" "), replacement_),
        pattern_(make_literal(replacement_)) {}

  void apply(Pieces& pieces) const override {
    for (Piece& piece : pieces.list) {
      if (piece.done()) continue;
      blanks_.apply(pieces, piece);
      if (prepend_ == Prepend::kNever || piece.text.starts_with(replacement_)) continue;
      if (prepend_ == Prepend::kAlways || piece.begin == 0) pieces.prepend(piece, replacement_);
    }
    if (splits_) split(pieces, *pattern_, Behavior::kMergedWithNext);
  }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool splits_;
  Replacement blanks_;
  std::unique_ptr<Pattern> pattern_;
};

Behavior read_behavior(const Fields& fields, const std::string& otherwise) {
  const std::string word = fields.text("behavior", otherwise);
  if (word == "Isolated") return Behavior::kIsolated;
  if (word == "Removed") return Behavior::kRemoved;
  if (word == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (word == "MergedWithNext") return Behavior::kMergedWithNext;
  if (word == "Contiguous") return Behavior::kContiguous;
  throw fields.error("behavior", "is " + runner::core::quote(word) + ", which roux does not know",
                     "it knows Isolated, Removed, MergedWithPrevious, MergedWithNext and Contiguous");
}

std::unique_ptr<PreTokenizer> make_metaspace(const Fields& fields, bool& needs_tracking) {
  std::string replacement;
  append_utf8(replacement, fields.character("replacement"));
  // Files of before 2023 have add_prefix_space alone.
  const std::string scheme = fields.text("prepend_scheme", fields.flag("add_prefix_space", true) ? "always" : "never");
  Metaspace::Prepend prepend = Metaspace::Prepend::kAlways;
  if (scheme == "first") {
    prepend = Metaspace::Prepend::kFirst;
    needs_tracking = true;
  } else if (scheme == "never") {
    prepend = Metaspace::Prepend::kNever;
  } else if (scheme != "always") {
    throw fields.error("prepend_scheme", "is " + runner::core::quote(scheme) + ", which roux does not know",
                       "it knows always, first and never");
  }
  return std::make_unique<Metaspace>(replacement, prepend, fields.flag("split", true));
}

std::unique_ptr<PreTokenizer> make(const Fields& fields, bool last, PreTokenizers& result) {
  const std::string type = fields.text("type");
  const auto by_class = [](CharClass wanted, bool runs, Behavior behavior) {
    return std::make_unique<Split>(std::make_unique<ClassPattern>(wanted, runs), behavior, false);
  };
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    const std::vector<Fields> all = fields.objects("pretokenizers");
    for (std::size_t i = 0; i < all.size(); ++i) parts.push_back(make(all[i], last && i + 1 == all.size(), result));
    return std::make_unique<InOrder>(std::move(parts));
  }
  if (type == "ByteLevel") {
    result.bytes = result.bytes || last;
    return std::make_unique<ByteLevel>(fields, last);
  }
  if (type == "Split") {
    return std::make_unique<Split>(read_pattern(fields), read_behavior(fields, ""), fields.flag("invert", false));
  }
  if (type == "Digits") {
    const bool each = fields.flag("individual_digits", false);
    return by_class(kNumber, !each, Behavior::kIsolated);
  }
  if (type == "Punctuation") return by_class(kPunctuation, false, read_behavior(fields, "Isolated"));
  if (type == "WhitespaceSplit") return by_class(kSpace, false, Behavior::kRemoved);
  if (type == "Whitespace") return std::make_unique<Split>(std::make_unique<Words>(), Behavior::kRemoved, true);
  if (type == "Metaspace") return make_metaspace(fields, result.needs_tracking);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  throw fields.error("type", "is " + runner::core::quote(type) + ", a pre-tokenizer that roux does not know",
                     "it knows Sequence, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, "
                     "Metaspace and BertPreTokenizer");
}

}  // namespace

void split(Pieces& pieces, const Pattern& pattern, Behavior behavior, bool invert) {
  std::vector<Piece> list;
  std::vector<Range> matches;
  std::vector<Part> parts;
  list.reserve(pieces.list.size() + pieces.text().size() / 4);
  for (const Piece& piece : pieces.list) {
    if (piece.done()) {
      list.push_back(piece);
      continue;
    }
    matches.clear();
    pattern.find(piece.text, matches);
    parts_of(piece.text, matches, invert, parts);
    arrange(parts, behavior);
    for (const Part& part : parts) {
      if (part.range.end > part.range.begin) {
        list.push_back(Pieces::slice(piece, part.range.begin, part.range.end));
      }
    }
  }
  pieces.list = std::move(list);
}

PreTokenizers make_pre_tokenizer(const Fields& fields, bool bytes) {
  PreTokenizers result;
  result.first = make(fields, bytes, result);
  return result;
}

}  // namespace components::tokenizer
