#include "components/tokenizer/settings.h"

#include <filesystem>

#include "components/tokenizer/fields.h"
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
    {"bos_token", "bos_token_id", &FolderSettings::bos},
    {"eos_token", "eos_token_id", &FolderSettings::eos},
    {"pad_token", "pad_token_id", &FolderSettings::pad},
    {"unk_token", "unk_token_id", &FolderSettings::unk},
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

}  // namespace

FolderSettings read_settings(const std::string& folder) {
  FolderSettings result;
  const auto with = [&](const char* name, auto read) {
    const std::string path = (fs::path(folder) / name).string();
    if (const auto node = read_json(path)) read(Fields(*node, path, ""));
  };
  with("tokenizer_config.json", [&](const Fields& fields) {
    read_texts(fields, result);
    read_config(fields, result.settings);
  });
  with("special_tokens_map.json", [&](const Fields& fields) { read_texts(fields, result); });
  with("generation_config.json", [&](const Fields& fields) { read_ids(fields, result); });
  with("config.json", [&](const Fields& fields) { read_ids(fields, result); });
  return result;
}

}  // namespace components::tokenizer
