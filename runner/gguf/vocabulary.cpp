#include "runner/gguf/vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "components/tokenizer/chat/chat_writer.h"
#include "components/tokenizer/model/sentencepiece_model.h"
#include "components/tokenizer/tokenizer.h"
#include "components/tokenizer/tokenizer_file.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/gguf/pre_tokenizers.h"

namespace runner::gguf {
namespace {

namespace fs = std::filesystem;
namespace tokenizer = components::tokenizer;
using core::Node;
using core::RunError;
using tokenizer::SentencePieceModel;

constexpr std::int64_t kBytesMax = 512 << 20;
constexpr const char* kBlank = "\xE2\x96\x81";  // U+2581, a blank of SentencePiece
constexpr float kByteScore = -1e4F;             // below that of any merge

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw RunError(message, hint, core::kExitUsage);
}

bool is_text(const Node* node, std::string_view text) {
  return node != nullptr && node->is_string() && node->as_string() == text;
}

bool is_null(const Node* node) { return node == nullptr || node->is_null(); }

/// `<0x0A>`
bool is_byte(const std::string& token) {
  constexpr std::size_t kSize = 6;
  return token.size() == kSize && token.starts_with("<0x") && token.ends_with(">");
}

std::int64_t characters(const std::string& text) {
  constexpr unsigned char kMask = 0xC0, kContinues = 0x80;
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & kMask) != kContinues; });
}

class Reader {
 public:
  Reader(std::string folder, std::int64_t rows) : folder_(std::move(folder)), rows_(rows) {}

  Vocabulary read() {
    tokenizer_ = tokenizer::read_tokenizer(folder_).value();
    read_tokens();
    const std::string path = tokenizer_->description().path;
    if (path.ends_with(".model")) {
      take_pieces(path);
    } else if (path.ends_with("vocab.json")) {
      made_.model = "gpt2";
      made_.pre = "gpt-2";
      const std::string merges = (fs::path(path).parent_path() / "merges.txt").string();
      take_merges(tokenizer::read_merges_txt(core::read_file(merges, kBytesMax).value(), merges));
    } else if (path.ends_with(".json")) {
      take_json(path);
    } else {
      refuse_model(tokenizer_->description().model);
    }
    read_special();
    if (const auto found = tokenizer::template_in(folder_)) made_.chat_template = found.value().text;
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse_model(const std::string& what) const {
    refuse("the tokenizer of " + folder_ + " is a " + what + ", and of these models llama.cpp reads BPE alone",
           "leave the ending .gguf out: a folder of Transformers keeps the tokenizer");
  }

  void read_tokens() {
    if (tokenizer_->id_limit() > rows_) {
      refuse("the tokenizer of " + folder_ + " has " + std::to_string(tokenizer_->id_limit()) +
                 " ids, and the model's embedding " + std::to_string(rows_) + " rows",
             "llama.cpp needs a row for each id: train with the embedding resized, or with the tokenizer of the model");
    }
    std::map<std::int32_t, const tokenizer::AddedToken*> added;
    for (const tokenizer::AddedToken& token : tokenizer_->added_tokens()) added[token.id] = &token;
    std::set<std::string> odd;
    for (std::int64_t i = 0; i < rows_; ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const auto text = tokenizer_->token_of(id);
      TokenKind kind = text ? TokenKind::kNormal : TokenKind::kUnused;
      if (const auto at = added.find(id); at != added.end()) {
        kind = at->second->special ? TokenKind::kControl : TokenKind::kUserDefined;
        if (at->second->lstrip || at->second->rstrip || at->second->single_word) odd.insert(at->second->content);
      } else if (text && tokenizer_->is_special(id)) {
        kind = TokenKind::kControl;
      }
      made_.tokens.push_back(text ? *text : "[PAD" + std::to_string(i) + "]");
      made_.kinds.push_back(kind);
    }
    for (const std::string& token : odd) {
      made_.notes.push_back(
          core::quote(token) +
          " strips the spaces beside it, or matches whole words only; llama.cpp finds it anywhere and "
          "keeps the spaces");
    }
  }

  void take_merges(const std::vector<std::pair<std::string, std::string>>& merges) {
    for (const auto& [left, right] : merges) made_.merges.push_back(left + " " + right);
  }

  void take_json(const std::string& path) {
    const tokenizer::TokenizerFile file =
        tokenizer::read_tokenizer_json(core::read_file(path, kBytesMax).value(), path);
    const Node* model = file.rest.find("model");
    const Node* type = model != nullptr ? model->find("type") : nullptr;
    if (!file.has_merges)
      refuse_model(type != nullptr && type->is_string() ? type->as_string() : "model without merges");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!is_null(model->find(key)) && !is_text(model->find(key), "")) refuse_model(std::string("BPE with a ") + key);
    }
    const Node* fallback = model->find("byte_fallback");
    if (fallback != nullptr && fallback->is_bool() && fallback->as_bool()) return take_scored(file);
    made_.model = "gpt2";
    const auto pre = pre_tokenizer_of(file.rest);
    if (!pre) throw RunError(path + ": " + pre.failure().message, pre.failure().hint, core::kExitUsage);
    made_.pre = pre.value()->name;
    const Node* normalizer = file.rest.find("normalizer");
    if (!is_null(normalizer)) {
      if (!is_text(normalizer->find("type"), "NFC")) refuse_model("BPE that changes its texts first (normalizer)");
      made_.notes.emplace_back("the tokenizer joins accents with their letters first (NFC), and llama.cpp does not");
    }
    take_merges(file.merges);
  }

  /// A BPE of SentencePiece, as Transformers has it: what it merges first has the highest score there.
  void take_scored(const tokenizer::TokenizerFile& file) {
    made_.model = "llama";
    made_.add_space_prefix = adds_blank(file.rest);
    std::map<std::string, float, std::less<>> scores;
    std::string last;
    for (std::size_t i = 0; i < file.merges.size(); ++i) {
      std::string merged = file.merges[i].first + file.merges[i].second;
      const bool is_new = scores.emplace(merged, -static_cast<float>(i)).second;
      if (!is_new && merged != last) {
        refuse_model("BPE whose merges have no order of scores (" + core::quote(merged) + " comes twice)");
      }
      last = std::move(merged);
    }
    const std::int32_t unknown = tokenizer_->special().unk.value_or(-1);
    for (std::size_t i = 0; i < made_.tokens.size(); ++i) {
      const auto at = scores.find(made_.tokens[i]);
      made_.scores.push_back(at != scores.end() ? at->second : kByteScore);
      if (static_cast<std::int32_t>(i) == unknown) made_.kinds[i] = TokenKind::kUnknown;
      if (is_byte(made_.tokens[i]) && made_.kinds[i] == TokenKind::kNormal) made_.kinds[i] = TokenKind::kByte;
      if (at != scores.end() || made_.kinds[i] != TokenKind::kNormal) continue;
      if (characters(made_.tokens[i]) > 1) {
        refuse_model("BPE with a token that no merge makes (" + core::quote(made_.tokens[i]) + ")");
      }
      made_.scores.back() = 0.0F;
    }
  }

  /// Whether a blank is put before a text; refuses what SentencePiece does not do.
  bool adds_blank(const Node& file) const {
    const Node *normalizer = file.find("normalizer"), *pre = file.find("pre_tokenizer");
    if (!is_null(pre)) {
      if (!is_text(pre->find("type"), "Metaspace") || !is_null(normalizer)) {
        refuse_model("BPE with bytes that splits texts otherwise than SentencePiece");
      }
      return !is_text(pre->find("prepend_scheme"), "never");
    }
    bool blank = false, replaces = false;
    std::vector<const Node*> steps;
    if (!is_null(normalizer)) {
      if (const Node* list = normalizer->find("normalizers")) {
        for (const Node& item : list->items()) steps.push_back(&item);
      } else {
        steps.push_back(normalizer);
      }
    }
    for (const Node* step : steps) {
      if (is_text(step->find("type"), "Prepend") && is_text(step->find("prepend"), kBlank)) {
        blank = true;
      } else if (is_text(step->find("type"), "Replace") && is_text(step->at_path("pattern.String"), " ") &&
                 is_text(step->find("content"), kBlank)) {
        replaces = true;
      } else {
        refuse_model("BPE with bytes that changes its texts otherwise than SentencePiece");
      }
    }
    if (!replaces) refuse_model("BPE with bytes that keeps its blanks");
    return blank;
  }

  void take_pieces(const std::string& path) {
    const SentencePieceModel model =
        tokenizer::read_sentencepiece_model(core::read_file(path, kBytesMax).value(), path);
    constexpr std::int64_t kBpe = 2;
    if (model.model_type != kBpe) refuse_model("SentencePiece model of another kind than BPE");
    made_.model = "llama";
    made_.add_space_prefix = model.add_dummy_prefix;
    for (std::size_t i = 0; i < made_.tokens.size(); ++i) {
      const bool is_piece = i < model.pieces.size();
      made_.scores.push_back(is_piece ? model.pieces[i].score : kByteScore);
      if (is_piece) made_.kinds[i] = static_cast<TokenKind>(model.pieces[i].kind);
    }
  }

  /// Which tokens have a meaning, and which of them are put around a text.
  void read_special() {
    const tokenizer::SpecialTokens& special = tokenizer_->special();
    made_.bos = special.bos;
    made_.eos = special.eos;
    made_.unk = special.unk;
    made_.pad = special.pad;
    const std::string text = "a";
    const auto bare = tokenizer_->encode(text, {.add_special_tokens = false}).value().ids;
    const auto whole = tokenizer_->encode(text, {.add_special_tokens = true}).value().ids;
    std::vector<std::int32_t> expected;
    made_.add_bos = special.bos && !whole.empty() && whole.front() == *special.bos && whole.size() > bare.size();
    made_.add_eos = special.eos && !whole.empty() && whole.back() == *special.eos &&
                    whole.size() > bare.size() + (made_.add_bos ? 1 : 0);
    if (made_.add_bos) expected.push_back(*special.bos);
    expected.insert(expected.end(), bare.begin(), bare.end());
    if (made_.add_eos) expected.push_back(*special.eos);
    if (whole != expected) {
      refuse("the tokenizer of " + folder_ + " puts other tokens around a text than its first and its last one",
             "llama.cpp adds bos and eos alone: leave the ending .gguf out");
    }
  }

  std::string folder_;
  std::int64_t rows_;
  std::shared_ptr<tokenizer::Tokenizer> tokenizer_;
  Vocabulary made_;
};

}  // namespace

core::Result<Vocabulary> vocabulary_of(const std::string& folder, std::int64_t rows) {
  return core::attempt([&] { return Reader(folder, rows).read(); });
}

}  // namespace runner::gguf
