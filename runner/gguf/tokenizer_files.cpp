#include "runner/gguf/tokenizer_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"
#include "runner/gguf/pre_tokenizers.h"
#include "runner/gguf/vocabulary.h"

namespace runner::gguf {
namespace {

using core::Node;
using core::RunError;

constexpr const char* kBlank = "\xE2\x96\x81";

Node mapping(std::vector<std::pair<const char*, Node>> fields) {
  Node made = Node::mapping();
  for (auto& [key, value] : fields) made.set(key, std::move(value));
  return made;
}

std::string quoted(const std::string& text) { return core::to_json(Node::string(text)); }

class Files {
 public:
  Files(const Node& values, const std::string& name) : values_(values), name_(name) {}

  std::vector<std::pair<std::string, std::string>> make() {
    const Node* model = find("model");
    if (model == nullptr || !model->is_string()) wrong("it has no tokenizer (tokenizer.ggml.model)");
    is_scored_ = model->as_string() == "llama";
    if (!is_scored_ && model->as_string() != "gpt2") {
      wrong("its tokenizer is of the kind " + core::quote(model->as_string()) +
            ", and roux reads gpt2 and llama there");
    }
    read_tokens();
    std::vector<std::pair<std::string, std::string>> files;
    files.emplace_back("tokenizer.json", tokenizer_json());
    files.emplace_back("tokenizer_config.json", core::to_json(config()) + "\n");
    const Node* chat = values_.find("tokenizer.chat_template");
    if (chat != nullptr && chat->is_string()) files.emplace_back("chat_template.jinja", chat->as_string());
    return files;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    throw RunError(name_ + ": " + what, "take the model's folder of Transformers, whose tokenizer roux reads",
                   core::kExitUsage);
  }

  const Node* find(const char* key) const { return values_.find(std::string("tokenizer.ggml.") + key); }

  std::optional<std::int64_t> id_of(const char* key) const {
    const Node* id = find(key);
    if (id == nullptr || !id->is_integer()) return std::nullopt;
    if (id->as_integer() >= 0 && id->as_integer() < static_cast<std::int64_t>(tokens_.size())) return id->as_integer();
    return std::nullopt;
  }

  bool flag(const char* key, bool otherwise) const {
    const Node* value = find(key);
    return value != nullptr && value->is_bool() ? value->as_bool() : otherwise;
  }

  void read_tokens() {
    const Node *tokens = find("tokens"), *kinds = find("token_type");
    if (tokens == nullptr || !tokens->is_sequence() || tokens->items().empty()) wrong("it has no tokens");
    for (const Node& token : tokens->items()) {
      if (!token.is_string()) wrong("a token is no text");
      tokens_.push_back(token.as_string());
    }
    const bool has_kinds = kinds != nullptr && kinds->is_sequence() && kinds->items().size() == tokens_.size();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Node* kind = has_kinds ? &kinds->items()[i] : nullptr;
      const std::int64_t number = kind != nullptr && kind->is_integer() ? kind->as_integer() : 1;
      kinds_.push_back(static_cast<TokenKind>(number));
    }
  }

  bool is_added(std::size_t id) const {
    return kinds_[id] == TokenKind::kControl || kinds_[id] == TokenKind::kUserDefined;
  }

  std::string tokenizer_json() const {
    std::string text = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)";
    text += core::to_json(added_tokens());
    Node normalizer, pre_tokenizer, decoder;
    bool ignore_merges = false;
    if (is_scored_) {
      std::tie(normalizer, decoder) = of_scores();
    } else {
      const PreTokenizer& pre = pre_tokenizer_of_file();
      ignore_merges = pre.ignore_merges;
      pre_tokenizer = written(pre);
      decoder = mapping({{"type", Node::string("ByteLevel")},
                         {"add_prefix_space", Node::boolean(true)},
                         {"trim_offsets", Node::boolean(true)},
                         {"use_regex", Node::boolean(true)}});
    }
    text += ",\"normalizer\":" + core::to_json(normalizer) + ",\"pre_tokenizer\":" + core::to_json(pre_tokenizer);
    text += ",\"post_processor\":" + core::to_json(post_processor(ignore_merges)) +
            ",\"decoder\":" + core::to_json(decoder);
    text += R"(,"model":{"type":"BPE","dropout":null,"unk_token":)";
    const auto unk = is_scored_ ? id_of("unknown_token_id") : std::nullopt;
    text += unk ? quoted(tokens_[static_cast<std::size_t>(*unk)]) : "null";
    text += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":)";
    text += is_scored_ ? R"(true,"byte_fallback":true)" : R"(false,"byte_fallback":false)";
    text += std::string(",\"ignore_merges\":") + (ignore_merges ? "true" : "false") + ",\"vocab\":{";
    bool first = true;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (kinds_[i] == TokenKind::kUnused) continue;  // a row of the embedding that no text has
      text += (first ? "" : ",") + quoted(tokens_[i]) + ":" + std::to_string(i);
      first = false;
    }
    text += "},\"merges\":[";
    is_scored_ ? add_scored_merges(text) : add_merges(text);
    return text + "]}}\n";
  }

  const PreTokenizer& pre_tokenizer_of_file() const {
    const Node* pre = find("pre");
    const std::string name = pre != nullptr && pre->is_string() ? pre->as_string() : "";
    if (const PreTokenizer* one = find_pre_tokenizer(name)) return *one;
    wrong(name.empty() ? "it does not say how its tokenizer splits a text (tokenizer.ggml.pre)"
                       : "its tokenizer splits a text as " + core::quote(name) + " does, which roux does not know");
  }

  Node added_tokens() const {
    std::vector<Node> added;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!is_added(i) && !(is_scored_ && kinds_[i] == TokenKind::kUnknown)) continue;
      const bool special = kinds_[i] != TokenKind::kUserDefined;
      added.push_back(mapping({{"id", Node::integer(static_cast<std::int64_t>(i))},
                               {"content", Node::string(tokens_[i])},
                               {"single_word", Node::boolean(false)},
                               {"lstrip", Node::boolean(false)},
                               {"rstrip", Node::boolean(false)},
                               {"normalized", Node::boolean(false)},
                               {"special", Node::boolean(special)}}));
    }
    return Node::sequence(std::move(added));
  }

  /// Normalizer and decoder of SentencePiece's BPE, as Transformers writes them.
  std::pair<Node, Node> of_scores() const {
    const auto text = [](const char* of) { return Node::string(of); };
    const auto replace = [&](const char* from, const char* to) {
      return mapping(
          {{"type", text("Replace")}, {"pattern", mapping({{"String", text(from)}})}, {"content", text(to)}});
    };
    std::vector<Node> before, behind;
    const bool blank = flag("add_space_prefix", true);
    if (blank) before.push_back(mapping({{"type", text("Prepend")}, {"prepend", text(kBlank)}}));
    before.push_back(replace(" ", kBlank));
    behind.push_back(replace(kBlank, " "));
    behind.push_back(mapping({{"type", text("ByteFallback")}}));
    behind.push_back(mapping({{"type", text("Fuse")}}));
    if (blank) {
      behind.push_back(mapping(
          {{"type", text("Strip")}, {"content", text(" ")}, {"start", Node::integer(1)}, {"stop", Node::integer(0)}}));
    }
    return {mapping({{"type", text("Sequence")}, {"normalizers", Node::sequence(std::move(before))}}),
            mapping({{"type", text("Sequence")}, {"decoders", Node::sequence(std::move(behind))}})};
  }

  /// What is put around a text; null for nothing.
  Node post_processor(bool of_llama3) const {
    const auto bos = id_of("bos_token_id"), eos = id_of("eos_token_id");
    const bool first = bos && flag("add_bos_token", is_scored_ || of_llama3),
               last = eos && flag("add_eos_token", false);
    if (!first && !last) return {};
    std::vector<Node> single, pair;
    Node special = Node::mapping();
    const auto add = [&](std::int64_t id, std::int64_t type, std::vector<Node>& to) {
      const std::string& token = tokens_[static_cast<std::size_t>(id)];
      to.push_back(
          mapping({{"SpecialToken", mapping({{"id", Node::string(token)}, {"type_id", Node::integer(type)}})}}));
      special.set(token, mapping({{"id", Node::string(token)},
                                  {"ids", Node::sequence({Node::integer(id)})},
                                  {"tokens", Node::sequence({Node::string(token)})}}));
    };
    const auto text = [&](const char* which, std::int64_t type, std::vector<Node>& to) {
      if (first) add(*bos, type, to);
      to.push_back(mapping({{"Sequence", mapping({{"id", Node::string(which)}, {"type_id", Node::integer(type)}})}}));
      if (last) add(*eos, type, to);
    };
    text("A", 0, single);
    text("A", 0, pair);
    text("B", 1, pair);
    return mapping({{"type", Node::string("TemplateProcessing")},
                    {"single", Node::sequence(std::move(single))},
                    {"pair", Node::sequence(std::move(pair))},
                    {"special_tokens", std::move(special)}});
  }

  void add_merges(std::string& text) const {
    const Node* merges = find("merges");
    if (merges == nullptr || !merges->is_sequence()) wrong("its tokenizer has no merges");
    bool first = true;
    for (const Node& merge : merges->items()) {
      const std::size_t at = merge.is_string() ? merge.as_string().find(' ', 1) : std::string::npos;
      if (at == std::string::npos) wrong("a merge of its tokenizer is no two tokens");
      const std::string& both = merge.as_string();
      text += (first ? "[" : ",[") + quoted(both.substr(0, at)) + "," + quoted(both.substr(at + 1)) + "]";
      first = false;
    }
  }

  /// SentencePiece merges the pair whose result has the highest score: each way to cut a token in two is a merge, the
  /// ones of the best token first.
  void add_scored_merges(std::string& text) const {
    const Node* scores = find("scores");
    if (scores == nullptr || !scores->is_sequence() || scores->items().size() != tokens_.size()) {
      wrong("its tokenizer has no score for each token");
    }
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (kinds_[i] == TokenKind::kNormal) ids.emplace(tokens_[i], i);
    }
    struct Merge {
      double score;
      std::size_t left, right;
    };
    std::vector<Merge> merges;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view token = tokens_[i];
      constexpr std::size_t kLongest = 512;  // bytes; longer ones would take long to cut
      if (kinds_[i] != TokenKind::kNormal || token.size() > kLongest) continue;
      const Node& score = scores->items()[i];
      if (!score.is_number()) wrong("a score of its tokenizer is no number");
      std::vector<Merge> own;
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        const auto left = ids.find(token.substr(0, cut)), right = ids.find(token.substr(cut));
        if (left != ids.end() && right != ids.end()) own.push_back({score.as_double(), left->second, right->second});
      }
      std::sort(own.begin(), own.end(),
                [](const Merge& a, const Merge& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
      merges.insert(merges.end(), own.begin(), own.end());
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.score > b.score; });
    bool first = true;
    for (const Merge& merge : merges) {
      text += (first ? "[" : ",[") + quoted(tokens_[merge.left]) + "," + quoted(tokens_[merge.right]) + "]";
      first = false;
    }
  }

  Node config() const {
    Node made = Node::mapping();
    const std::pair<const char*, const char*> names[] = {{"bos_token", "bos_token_id"},
                                                         {"eos_token", "eos_token_id"},
                                                         {"unk_token", "unknown_token_id"},
                                                         {"pad_token", "padding_token_id"}};
    for (const auto& [name, key] : names) {
      if (const auto id = id_of(key)) made.set(name, Node::string(tokens_[static_cast<std::size_t>(*id)]));
    }
    made.set("clean_up_tokenization_spaces", Node::boolean(false));
    made.set("tokenizer_class", Node::string("PreTrainedTokenizerFast"));
    return made;
  }

  const Node& values_;
  const std::string& name_;
  bool is_scored_ = false;
  std::vector<std::string> tokens_;
  std::vector<TokenKind> kinds_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> tokenizer_files(const Node& values, const std::string& name) {
  return Files(values, name).make();
}

}  // namespace runner::gguf
