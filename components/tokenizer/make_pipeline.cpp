#include <algorithm>
#include <unordered_map>
#include <utility>

#include "components/tokenizer/bert.h"
#include "components/tokenizer/model/bpe.h"
#include "components/tokenizer/model/unigram.h"
#include "components/tokenizer/model/wordpiece.h"
#include "components/tokenizer/pipeline.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

using runner::core::Node;
using runner::core::RunError;

/// Adds the tokens of a folder as Transformers does: one that is there gets their flags, another one the id that it has
/// in the vocabulary, or the next one that is free. A token that the folder only names as its start, end or the like is
/// found in texts, but gets no id that the model does not know.
void add_tokens(const FolderSettings& settings, const Vocabulary& vocabulary, std::vector<AddedToken>& added) {
  std::unordered_map<std::string, std::size_t> places;
  auto next = static_cast<std::int32_t>(vocabulary.size());
  for (std::size_t i = 0; i < added.size(); ++i) {
    places.emplace(added[i].content, i);
    next = std::max(next, added[i].id + 1);
  }
  const auto add = [&](AddedToken token) {
    const bool fits = token.content.size() <= AddedTokens::kBytesMax && added.size() < AddedTokens::kTokensMax;
    if (token.content.empty() || !fits) return;
    if (const auto found = places.find(token.content); found != places.end()) {
      token.id = added[found->second].id;
      added[found->second] = std::move(token);
      return;
    }
    const auto known = vocabulary.id_of(token.content);
    token.id = known ? *known : next;
    next = std::max(next, token.id + 1);
    places.emplace(token.content, added.size());
    added.push_back(std::move(token));
  };
  for (const AddedToken& token : settings.added) add(token);
  const auto add_special = [&](const std::string& text) {
    if (places.contains(text)) return;
    AddedToken token{0, text};
    token.special = true;
    token.normalized = false;
    add(std::move(token));
  };
  for (const std::string& text : settings.named) {
    if (vocabulary.id_of(text)) add_special(text);
  }
  for (const std::string& text : settings.extra) add_special(text);
}

/// `Split, ByteLevel`: the types of a part, those of a sequence in order.
std::string types_of(const Node& node, const char* list) {
  const Node* parts = node.find(list);
  if (parts != nullptr && parts->is_sequence()) {
    return runner::core::joined(parts->items(), ", ", [&](const Node& part) { return types_of(part, list); });
  }
  const Node* type = node.find("type");
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

/// Of an earlier file that does not say so, by what it holds.
std::string type_of(const Fields& model, const TokenizerFile& file) {
  const bool has_prefix = model.has("continuing_subword_prefix");
  return model.text("type", file.has_merges ? "BPE" : file.has_scores ? "Unigram" : has_prefix ? "WordPiece" : "");
}

std::unique_ptr<Model> make_bpe(const Fields& model, TokenizerFile& file, bool bytes) {
  if (file.has_scores) throw model.error("vocab", "is not an object");
  if (const Node* dropout = model.find("dropout");
      dropout != nullptr && dropout->is_number() && dropout->as_double() > 0) {
    throw model.error("dropout", "is not 0: roux encodes a text the same way each time");
  }
  Bpe::Config config;
  config.vocabulary = std::move(file.vocabulary);
  config.merges = std::move(file.merges);
  config.unk_token = model.text_or_none("unk_token");
  config.continuing_subword_prefix = model.text("continuing_subword_prefix", "");
  config.end_of_word_suffix = model.text("end_of_word_suffix", "");
  config.fuse_unk = model.flag("fuse_unk", false);
  config.byte_fallback = model.flag("byte_fallback", false);
  config.ignore_merges = model.flag("ignore_merges", false);
  config.bytes = bytes;
  return std::make_unique<Bpe>(std::move(config), model.file());
}

std::unique_ptr<Model> make_wordpiece(const Fields& model, TokenizerFile& file) {
  if (file.has_scores) throw model.error("vocab", "is not an object");
  WordPiece::Config config;
  config.vocabulary = std::move(file.vocabulary);
  config.unk_token = model.text("unk_token", config.unk_token);
  config.continuing_subword_prefix = model.text("continuing_subword_prefix", config.continuing_subword_prefix);
  if (model.has("max_input_chars_per_word")) {
    config.max_input_chars_per_word =
        model.integer("max_input_chars_per_word", 0, static_cast<std::int64_t>(Tokenizer::kTextMax));
  }
  return std::make_unique<WordPiece>(std::move(config), model.file());
}

std::unique_ptr<Model> make_unigram(const Fields& model, TokenizerFile& file) {
  if (!file.has_scores) throw model.error("vocab", "is not a list of tokens with their scores");
  Unigram::Config config;
  config.vocabulary = std::move(file.vocabulary);
  config.scores = std::move(file.scores);
  if (model.has("unk_id")) config.unk_id = model.integer("unk_id", 0, Vocabulary::kIdsMax - 1);
  config.byte_fallback = model.flag("byte_fallback", false);
  return std::make_unique<Unigram>(std::move(config), model.file());
}

}  // namespace

std::shared_ptr<Tokenizer> make_pipeline(TokenizerFile file, const FolderSettings& settings, Description description) {
  const std::string path = description.path;
  const Fields root(file.rest, path, "");
  if (!root.has("model")) throw root.error("model", "is missing");
  const Fields model = root.object("model");
  const std::string type = type_of(model, file);
  if (type.empty()) throw model.error("type", "is missing");
  if (type != "BPE" && type != "WordPiece" && type != "Unigram") {
    throw model.error("type", "is " + runner::core::quote(type) + ", a model that roux does not know",
                      "it knows BPE, WordPiece and Unigram");
  }
  Parts parts;
  const auto part = [&](const char* name, const char* list, auto make) {
    if (!root.has(name)) return;
    const Fields fields = root.object(name);
    make(fields);
    const std::string types = types_of(fields.node(), list);
    if (!types.empty()) description.parts.emplace_back(name, types);
  };
  const bool takes_bytes = type == "BPE" && model.text("continuing_subword_prefix", "").empty() &&
                           model.text("end_of_word_suffix", "").empty() && !model.flag("byte_fallback", false);
  part("normalizer", "normalizers", [&](const Fields& fields) { parts.normalizer = make_normalizer(fields); });
  part("pre_tokenizer", "pretokenizers",
       [&](const Fields& fields) { parts.pre_tokenizers = make_pre_tokenizer(fields, takes_bytes); });
  add_tokens(settings, file.vocabulary, file.added);
  parts.model = type == "BPE"         ? make_bpe(model, file, parts.pre_tokenizers.bytes)
                : type == "WordPiece" ? make_wordpiece(model, file)
                                      : make_unigram(model, file);
  description.model = parts.model->type();
  part("post_processor", "processors",
       [&](const Fields& fields) { parts.post_processor = make_post_processor(fields); });
  part("decoder", "decoders", [&](const Fields& fields) { parts.decoder = make_decoder(fields); });
  parts.added = std::move(file.added);
  return std::make_shared<Pipeline>(std::move(parts), settings, std::move(description));
}

std::shared_ptr<Tokenizer> make_byte_level_pipeline(Vocabulary vocabulary,
                                                    std::vector<std::pair<std::string, std::string>> merges,
                                                    const FolderSettings& settings, Description description) {
  Node byte_level = Node::mapping();
  byte_level.set("type", Node::string("ByteLevel"));
  byte_level.set("add_prefix_space", Node::boolean(false));
  const Fields fields(byte_level, description.path, "");
  Bpe::Config config;
  config.vocabulary = std::move(vocabulary);
  config.merges = std::move(merges);
  config.bytes = true;
  Parts parts;
  add_tokens(settings, config.vocabulary, parts.added);
  parts.pre_tokenizers = make_pre_tokenizer(fields, true);
  parts.decoder = make_decoder(fields);
  parts.model = std::make_unique<Bpe>(std::move(config), description.path);
  description.model = parts.model->type();
  description.parts = {{"pre_tokenizer", "ByteLevel"}, {"decoder", "ByteLevel"}};
  return std::make_shared<Pipeline>(std::move(parts), settings, std::move(description));
}

std::shared_ptr<Tokenizer> make_bert_pipeline(Vocabulary vocabulary, FolderSettings settings, Description description) {
  const std::string file = description.path;
  // The names that Transformers gives what the folder does not name.
  const auto name = [&](FolderSettings::Token& token, const char* otherwise) {
    if (!token.text) token.text = otherwise;
    settings.named.push_back(*token.text);
    return *token.text;
  };
  const std::string unknown = name(settings.unk, "[UNK]"), first = name(settings.cls, "[CLS]"),
                    last = name(settings.sep, "[SEP]");
  name(settings.pad, "[PAD]");
  name(settings.mask, "[MASK]");
  const auto id_of = [&](const std::string& token) {
    const auto id = vocabulary.id_of(token);
    if (!id) throw RunError(file + ": it has no token " + runner::core::quote(token));
    return *id;
  };
  Parts parts;
  parts.normalizer = make_bert_normalizer(settings.bert);
  parts.pre_tokenizers.first = make_bert_pre_tokenizer();
  parts.post_processor = make_bert_frame(id_of(first), id_of(last));
  parts.decoder = make_wordpiece_decoder("##", true);
  add_tokens(settings, vocabulary, parts.added);
  id_of(unknown);
  WordPiece::Config config;
  config.vocabulary = std::move(vocabulary);
  config.unk_token = unknown;
  parts.model = std::make_unique<WordPiece>(std::move(config), file);
  description.model = parts.model->type();
  description.parts = {{"normalizer", "BertNormalizer"},
                       {"pre_tokenizer", "BertPreTokenizer"},
                       {"post_processor", "TemplateProcessing"},
                       {"decoder", "WordPiece"}};
  return std::make_shared<Pipeline>(std::move(parts), settings, std::move(description));
}

}  // namespace components::tokenizer
