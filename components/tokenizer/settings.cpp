#include "components/tokenizer/settings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>

#include "components/tokenizer/text/fields.h"
#include "components/tokenizer/tokenizer_file.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"

namespace components::tokenizer {
namespace {

namespace fs = std::filesystem;
using runner::core::Node;

constexpr std::int64_t kBytesMax = 64 << 20;

std::optional<Node> read_json(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return read_json_object(runner::core::read_file(path, kBytesMax).value(), path);
}

struct Name {
  const char* text;  // of tokenizer_config.json
  const char* id;    // of generation_config.json
  FolderSettings::Token FolderSettings::*token;
};
constexpr Name kNames[] = {
    {"bos_token", "bos_token_id", &FolderSettings::bos},    {"eos_token", "eos_token_id", &FolderSettings::eos},
    {"pad_token", "pad_token_id", &FolderSettings::pad},    {"unk_token", "unk_token_id", &FolderSettings::unk},
    {"cls_token", "cls_token_id", &FolderSettings::cls},    {"sep_token", "sep_token_id", &FolderSettings::sep},
    {"mask_token", "mask_token_id", &FolderSettings::mask},
};

/// `"<s>"` or `{"content": "<s>", ...}`.
void read_texts(const Fields& fields, FolderSettings& into) {
  for (const Name& name : kNames) {
    const Node* node = fields.find(name.text);
    auto& token = into.*name.token;
    if (node == nullptr || token.text) continue;
    token.text = node->is_mapping() ? fields.object(name.text).text("content") : fields.text(name.text);
  }
}

void read_ids(const Fields& fields, FolderSettings& into) {
  for (const Name& name : kNames) {
    const Node* node = fields.find(name.id);
    if (node != nullptr && node->is_sequence()) node = node->items().empty() ? nullptr : &node->items().front();
    auto& token = into.*name.token;
    if (node != nullptr && node->is_integer() && !token.id) token.id = node->as_integer();
  }
}

Side read_side(const Fields& fields, const char* key) {
  const std::string word = fields.text(key, "right");
  if (word == "left") return Side::kLeft;
  if (word == "right") return Side::kRight;
  throw fields.error(key, "is " + runner::core::quote(word) + ", neither left nor right");
}

std::optional<bool> read_flag(const Fields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  return fields.flag(key, false);
}

void read_config(const Fields& fields, Settings& settings) {
  settings.padding_side = read_side(fields, "padding_side");
  settings.truncation_side = read_side(fields, "truncation_side");
  settings.add_bos_token = read_flag(fields, "add_bos_token");
  settings.add_eos_token = read_flag(fields, "add_eos_token");
  settings.clean_up_tokenization_spaces = fields.flag("clean_up_tokenization_spaces", false);
  settings.tokenizer_class = fields.text("tokenizer_class", "");
  // A model without a limit has 1e30 there.
  const Node* most = fields.find("model_max_length");
  if (most != nullptr && most->is_integer() && most->as_integer() > 0) settings.model_max_length = most->as_integer();
}

std::string content_of(const Node& token) {
  if (token.is_string()) return token.as_string();
  const Node* content = token.is_mapping() ? token.find("content") : nullptr;
  return content != nullptr && content->is_string() ? content->as_string() : "";
}

/// `{"151646": {"content": "<tool>", "lstrip": false, ...}}`, by id.
void read_decoder(const Fields& fields, FolderSettings& into) {
  std::map<std::int64_t, AddedToken> by_id;
  for (const Node::Entry& entry : fields.node().entries()) {
    std::int64_t id = 0;
    const char* const end = entry.key.data() + entry.key.size();
    if (std::from_chars(entry.key.data(), end, id).ptr != end) throw fields.error(entry.key, "is not an id");
    const Fields token = fields.object(entry.key);
    AddedToken added{0, token.text("content")};
    added.special = token.flag("special", false);
    added.single_word = token.flag("single_word", false);
    added.lstrip = token.flag("lstrip", false);
    added.rstrip = token.flag("rstrip", false);
    added.normalized = token.flag("normalized", !added.special);
    by_id.emplace(id, std::move(added));
  }
  for (auto& [id, token] : by_id) into.added.push_back(std::move(token));
}

constexpr const char* kExtra = "extra_special_tokens";
constexpr const char* kEarlierExtra = "additional_special_tokens";  // its name before version 5

/// The texts of special tokens: `bos_token`, ..., and those of the lists.
void read_named(const Fields& fields, FolderSettings& into) {
  for (const Node::Entry& entry : fields.node().entries()) {
    if (entry.key.ends_with("_token")) into.named.push_back(content_of(entry.value));
  }
  for (const char* key : {kExtra, kEarlierExtra}) {
    const Node* list = fields.find(key);
    std::vector<std::string> texts;
    if (list != nullptr && list->is_sequence()) {
      for (const Node& token : list->items()) texts.push_back(content_of(token));
    } else if (list != nullptr && list->is_mapping()) {
      for (const Node::Entry& entry : list->entries()) texts.push_back(content_of(entry.value));
    }
    into.extra.insert(into.extra.end(), texts.begin(), texts.end());
    if (!texts.empty()) return;  // the new name of the two counts
  }
}

/// Which texts Transformers takes for special ones where it reads added_tokens.json: those of a list that are texts,
/// and not those of a list of special_tokens_map.json by its earlier name.
void read_specials(const Fields& fields, bool of_map, std::vector<std::string>& specials) {
  for (const Node::Entry& entry : fields.node().entries()) {
    if (entry.key.ends_with("_token")) specials.push_back(content_of(entry.value));
  }
  const Node* list = fields.find(kExtra);
  if (list == nullptr && !of_map) list = fields.find(kEarlierExtra);
  if (list != nullptr && list->is_mapping()) {
    for (const Node::Entry& entry : list->entries()) specials.push_back(content_of(entry.value));
  }
  if (list == nullptr || !list->is_sequence()) return;
  for (const Node& token : list->items()) {
    if (token.is_string()) specials.push_back(token.as_string());
  }
}

/// `{"<tool>": 151646}` of earlier versions, by id.
void read_added(const Fields& fields, const std::vector<std::string>& specials, FolderSettings& into) {
  std::map<std::int64_t, AddedToken> by_id;
  for (const Node::Entry& entry : fields.node().entries()) {
    AddedToken added{0, entry.key};
    added.special = std::find(specials.begin(), specials.end(), entry.key) != specials.end();
    added.normalized = !added.special;
    by_id.emplace(fields.integer(entry.key, 0, Vocabulary::kIdsMax - 1), std::move(added));
  }
  for (auto& [id, token] : by_id) into.added.push_back(std::move(token));
}

}  // namespace

FolderSettings read_settings(const std::string& folder) {
  FolderSettings result;
  const auto with = [&](const char* name, auto read) {
    const std::string path = (fs::path(folder) / name).string();
    if (const auto node = read_json(path)) read(Fields(*node, path, ""));
  };
  bool has_decoder = false;
  std::vector<std::string> specials;
  with("tokenizer_config.json", [&](const Fields& fields) {
    has_decoder = fields.has("added_tokens_decoder");
    if (has_decoder) read_decoder(fields.object("added_tokens_decoder"), result);
    read_named(fields, result);
    read_specials(fields, false, specials);
    result.split_special_tokens = fields.flag("split_special_tokens", false);
    read_texts(fields, result);
    read_config(fields, result.settings);
    result.bert.lowercase = fields.flag("do_lower_case", true);
    result.bert.chinese_chars = fields.flag("tokenize_chinese_chars", true);
    result.bert.strip_accents = read_flag(fields, "strip_accents");
  });
  with("special_tokens_map.json", [&](const Fields& fields) {
    if (!has_decoder) read_named(fields, result);
    read_specials(fields, true, specials);
    read_texts(fields, result);
  });
  if (!has_decoder) with("added_tokens.json", [&](const Fields& fields) { read_added(fields, specials, result); });
  with("generation_config.json", [&](const Fields& fields) { read_ids(fields, result); });
  with("config.json", [&](const Fields& fields) { read_ids(fields, result); });
  return result;
}

}  // namespace components::tokenizer
