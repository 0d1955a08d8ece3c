#include "components/tokenizer/tokenizer_file.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <unordered_set>

#include "components/tokenizer/added_tokens.h"
#include "components/tokenizer/model/bpe.h"
#include "runner/core/error.h"
#include "runner/core/json_problem.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using Json = nlohmann::json;
using runner::core::Node;
using runner::core::RunError;

constexpr std::size_t kDepthMax = 64;
constexpr std::size_t kValuesMax = 1'000'000;  // of the tree, without the long parts
constexpr std::size_t kTokenBytesMax = 100'000;

/// `a b` to its two; false when that is not what it is.
bool split_merge(std::string_view text, std::pair<std::string, std::string>& merge) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) return false;
  merge = {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
  return true;
}

/// Builds the tree from the parser's events, so that size is refused before it costs anything. A vocabulary has
/// hundreds of thousands of entries, too many for nodes of a tree.
class Reader final : public Json::json_sax_t {
 public:
  enum class Place { kNone, kRoot, kModel, kVocab, kScores, kScore, kMerges, kMerge, kAddedTokens, kAddedToken, kTree };

  /// `root`: what the whole text is.
  Reader(std::string_view text, TokenizerFile& file, Place root) : text_(text), file_(file), root_(root) {}

  bool null() override { return add(Node::null()); }
  bool boolean(bool value) override { return add(Node::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(Node::floating(static_cast<double>(value)));
    }
    return add_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Node::floating(value)); }
  bool string(string_t& value) override {
    if (place() == Place::kMerges) return add_merge_text(value);
    if (place() == Place::kMerge) {
      ++parts_;
      if (parts_ <= 2) (parts_ == 1 ? merge_.first : merge_.second) = std::move(value);
      return parts_ <= 2 || refuse(merge_field(), "holds more than two tokens");
    }
    return add(Node::string(std::move(value)));
  }
  bool binary(binary_t&) override { return refuse("", "holds binary values"); }

  bool start_object(std::size_t) override {
    if (levels_.empty()) return open(root_);
    if (place() == Place::kRoot && key() == "model") return open(Place::kModel);
    if (place() == Place::kModel && key() == "vocab") return open(Place::kVocab);
    if (place() == Place::kAddedTokens) {
      if (file_.added.size() >= AddedTokens::kTokensMax) {
        return refuse("added_tokens", "holds more than " + std::to_string(AddedTokens::kTokensMax) + " tokens");
      }
      file_.added.emplace_back();
      added_has_id_ = false;
      return open(Place::kAddedToken);
    }
    return open(Place::kTree);
  }
  bool start_array(std::size_t) override {
    if (place() == Place::kRoot && key() == "added_tokens") return open(Place::kAddedTokens);
    if (place() == Place::kModel && key() == "merges") {
      file_.has_merges = true;
      return open(Place::kMerges);
    }
    if (place() == Place::kModel && key() == "vocab") {
      file_.has_scores = true;
      return open(Place::kScores);
    }
    if (place() == Place::kScores) {
      parts_ = 0;
      return open(Place::kScore);
    }
    if (place() == Place::kMerges) {
      parts_ = 0;
      return open(Place::kMerge);
    }
    if (levels_.empty()) return refuse("", "is not a JSON object");
    return open(Place::kTree, true);
  }
  bool end_object() override {
    if (place() == Place::kAddedToken) {
      const AddedToken& token = file_.added.back();
      if (!added_has_id_) return refuse(added_field("id"), "is missing");
      if (token.content.size() > AddedTokens::kBytesMax) {
        return refuse(added_field("content"), "has more than " + std::to_string(AddedTokens::kBytesMax) + " bytes");
      }
    }
    return close();
  }
  bool end_array() override {
    if (place() == Place::kMerge) {
      if (parts_ != 2) return refuse(merge_field(), "is not two tokens");
      if (!add_merge(std::move(merge_))) return false;
    }
    if (place() == Place::kScore && !add_score()) return false;
    return close();
  }
  bool key(string_t& value) override {
    Level& level = levels_.back();
    level.key = std::move(value);
    if (level.place == Place::kVocab) return true;
    if (!level.keys.insert(level.key).second) return refuse(path(), "appears twice");
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return refuse("", runner::core::json_problem(text_, position));
  }

  const std::string& problem() const { return problem_; }

 private:
  struct Level {
    Place place;
    Node node;
    std::string key = {};
    std::unordered_set<std::string> keys = {};
  };

  Place place() const { return levels_.empty() ? Place::kNone : levels_.back().place; }
  const std::string& key() const { return levels_.back().key; }

  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.place == Place::kAddedToken) {
        text += "[" + std::to_string(file_.added.size() - 1) + "]";
      } else if (level.node.is_sequence() && level.place == Place::kTree) {
        text += "[" + std::to_string(level.node.items().size()) + "]";
        continue;
      }
      if (level.key.empty()) continue;
      if (!text.empty()) text += ".";
      text += runner::core::escape_for_terminal(level.key.substr(0, 80));
    }
    return text;
  }
  std::string added_field(const char* name) const {
    return "added_tokens[" + std::to_string(file_.added.size() - 1) + "]." + name;
  }
  static constexpr const char* kNoScore = "is not a token with its score";
  std::string score_field() const { return "model.vocab[" + std::to_string(file_.scores.size()) + "]"; }
  std::string merge_field() const { return "model.merges[" + std::to_string(file_.merges.size()) + "]"; }

  bool refuse(const std::string& field, const std::string& what) {
    if (problem_.empty()) problem_ = (field.empty() ? "it" : field) + " " + what;
    return false;
  }

  bool open(Place place, bool list = false) {
    if (levels_.size() >= kDepthMax) {
      return refuse(path(), "is nested deeper than " + std::to_string(kDepthMax) + " levels");
    }
    if (place == Place::kTree && this->place() == Place::kVocab) return refuse(path(), "is not an id");
    if (place == Place::kTree && (this->place() == Place::kScores || this->place() == Place::kScore)) {
      return refuse(score_field(), kNoScore);
    }
    if (place == Place::kTree && this->place() == Place::kMerges) return refuse(merge_field(), "is not two tokens");
    if (place == Place::kTree && this->place() == Place::kMerge) return refuse(merge_field(), "is not two tokens");
    if (place == Place::kTree && this->place() == Place::kAddedTokens) {
      return refuse("added_tokens", "holds what is no object");
    }
    levels_.push_back({place, list ? Node::sequence() : Node::mapping()});
    return true;
  }
  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
      file_.rest = std::move(level.node);
      return true;
    }
    switch (level.place) {
      case Place::kModel:
      case Place::kTree: return add(std::move(level.node));
      default: return true;
    }
  }

  bool add_integer(std::int64_t value) {
    if (place() != Place::kVocab) return add(Node::integer(value));
    if (value < 0 || value >= Vocabulary::kIdsMax) {
      return refuse(path(),
                    "is " + std::to_string(value) + ", not an id from 0 to " + std::to_string(Vocabulary::kIdsMax - 1));
    }
    if (key().size() > kTokenBytesMax) return refuse(path(), "is a token of more than 100,000 bytes");
    if (file_.vocabulary.size() >= static_cast<std::size_t>(Vocabulary::kTokensMax)) {
      return refuse(path(), "is one token more than " + std::to_string(Vocabulary::kTokensMax));
    }
    if (!file_.vocabulary.add(key(), static_cast<std::int32_t>(value))) {
      return refuse(path(), file_.vocabulary.id_of(key())
                                ? "appears twice"
                                : "has the id " + std::to_string(value) + ", which another token has, too");
    }
    return true;
  }

  bool add_merge_text(const std::string& text) {
    std::pair<std::string, std::string> merge;
    if (!split_merge(text, merge)) {
      if (text.starts_with("#version")) return true;
      return refuse(merge_field(), "is " + runner::core::quote(text) + ", not two tokens with a space between them");
    }
    return add_merge(std::move(merge));
  }
  bool add_merge(std::pair<std::string, std::string> merge) {
    if (file_.merges.size() >= Bpe::kMergesMax) {
      return refuse(merge_field(), "is one merge more than " + std::to_string(Bpe::kMergesMax));
    }
    file_.merges.push_back(std::move(merge));
    return true;
  }

  bool add(Node node) {
    switch (place()) {
      case Place::kNone: return refuse("", "is not a JSON object");
      case Place::kVocab: return refuse(path(), "is not an id");
      case Place::kScores: return refuse(score_field(), kNoScore);
      case Place::kScore: return add_to_score(node);
      case Place::kMerges:
      case Place::kMerge: return refuse(merge_field(), "is not two tokens");
      case Place::kAddedTokens: return refuse("added_tokens", "holds what is no object");
      case Place::kAddedToken: return add_to_token(node);
      default: break;
    }
    if (++values_ > kValuesMax) return refuse("", "holds more than " + std::to_string(kValuesMax) + " values");
    Level& level = levels_.back();
    if (level.node.is_sequence()) {
      level.node.items().push_back(std::move(node));
    } else {
      level.node.entries().push_back({level.key, {}, std::move(node)});
    }
    return true;
  }

  bool add_to_score(const Node& node) {
    ++parts_;
    if (parts_ == 1 && node.is_string()) {
      merge_.first = node.as_string();
      return true;
    }
    if (parts_ != 2 || !node.is_number()) return refuse(score_field(), kNoScore);
    score_ = node.as_double();
    return true;
  }
  bool add_score() {
    if (parts_ != 2) return refuse(score_field(), kNoScore);
    if (merge_.first.size() > kTokenBytesMax) return refuse(score_field(), "is a token of more than 100,000 bytes");
    if (file_.scores.size() >= static_cast<std::size_t>(Vocabulary::kTokensMax)) {
      return refuse(score_field(), "is one token more than " + std::to_string(Vocabulary::kTokensMax));
    }
    if (!file_.vocabulary.add(merge_.first, static_cast<std::int32_t>(file_.scores.size()))) {
      return refuse(score_field(), "is " + runner::core::quote(merge_.first) + ", which another one is, too");
    }
    file_.scores.push_back(score_);
    return true;
  }

  bool add_to_token(const Node& node) {
    AddedToken& token = file_.added.back();
    const std::string& name = key();
    if (name == "id") {
      if (!node.is_integer() || node.as_integer() < 0 || node.as_integer() >= Vocabulary::kIdsMax) {
        return refuse(added_field("id"), "is not an id from 0 to " + std::to_string(Vocabulary::kIdsMax - 1));
      }
      token.id = static_cast<std::int32_t>(node.as_integer());
      added_has_id_ = true;
      return true;
    }
    if (name == "content") {
      if (!node.is_string()) return refuse(added_field("content"), "is not a string");
      token.content = node.as_string();
      return true;
    }
    for (const auto& [flag, into] : {std::pair{"single_word", &token.single_word},
                                     {"lstrip", &token.lstrip},
                                     {"rstrip", &token.rstrip},
                                     {"normalized", &token.normalized},
                                     {"special", &token.special}}) {
      if (name != flag) continue;
      if (!node.is_bool()) return refuse(added_field(flag), "is neither true nor false");
      *into = node.as_bool();
    }
    return true;
  }

  const std::string_view text_;
  TokenizerFile& file_;
  Place root_;
  std::vector<Level> levels_;
  std::pair<std::string, std::string> merge_;
  double score_ = 0;
  int parts_ = 0;  // of a merge, or of a token with its score
  bool added_has_id_ = false;
  std::size_t values_ = 0;
  std::string problem_;
};

TokenizerFile read(std::string_view text, const std::string& file, Reader::Place root) {
  TokenizerFile result;
  Reader reader(text, result, root);
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) throw RunError(file + ": " + reader.problem());
  return result;
}

}  // namespace

TokenizerFile read_tokenizer_json(std::string_view text, const std::string& file) {
  return read(text, file, Reader::Place::kRoot);
}

Node read_json_object(std::string_view text, const std::string& file) {
  return std::move(read(text, file, Reader::Place::kTree).rest);
}

Vocabulary read_vocab_json(std::string_view text, const std::string& file) {
  return std::move(read(text, file, Reader::Place::kVocab).vocabulary);
}

Vocabulary read_vocab_txt(std::string_view text, const std::string& file) {
  if (const auto at = runner::core::find_invalid_utf8(text); at != std::string_view::npos) {
    throw RunError(file + ": it is not UTF-8 at byte " + std::to_string(at));
  }
  const auto place = [&](std::size_t line) { return file + ":" + std::to_string(line) + ": "; };
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().size() > kTokenBytesMax)
      throw RunError(place(lines.size()) + "a token of more than 100,000 bytes");
    if (lines.size() > static_cast<std::size_t>(Vocabulary::kTokensMax)) {
      throw RunError(place(lines.size()) + "one token more than " + std::to_string(Vocabulary::kTokensMax));
    }
    at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  if (lines.empty()) throw RunError(file + ": it has no tokens");
  Vocabulary vocabulary;
  vocabulary.reserve(lines.size());
  for (std::size_t i = lines.size(); i-- > 0;) vocabulary.add(lines[i], static_cast<std::int32_t>(i));
  return vocabulary;
}

std::vector<std::pair<std::string, std::string>> read_merges_txt(std::string_view text, const std::string& file) {
  if (const auto at = runner::core::find_invalid_utf8(text); at != std::string_view::npos) {
    throw RunError(file + ": it is not UTF-8 at byte " + std::to_string(at));
  }
  std::vector<std::pair<std::string, std::string>> merges;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    at = end + 1;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty() || row.starts_with("#version")) continue;
    std::pair<std::string, std::string> merge;
    if (!split_merge(row, merge)) {
      throw RunError(file + ":" + std::to_string(line) + ": " + runner::core::quote(row) +
                     " is not two tokens with a space between them");
    }
    if (merges.size() >= Bpe::kMergesMax) {
      throw RunError(file + ":" + std::to_string(line) + ": one merge more than " + std::to_string(Bpe::kMergesMax));
    }
    merges.push_back(std::move(merge));
  }
  return merges;
}

}  // namespace components::tokenizer
