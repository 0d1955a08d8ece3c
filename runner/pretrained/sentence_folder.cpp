#include "runner/pretrained/sentence_folder.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace runner::pretrained {
namespace {

namespace fs = std::filesystem;

using core::Failure;
using core::Node;
using core::Result;

constexpr const char *kModules = "modules.json", *kOfModel = "sentence_bert_config.json",
                     *kOfAll = "config_sentence_transformers.json", *kPooling = "1_Pooling/config.json";
constexpr const char *kTransformer = "Transformer", *kPoolingModule = "Pooling", *kNormalize = "Normalize";
constexpr std::int64_t kBytesMax = 1 << 20;

/// Ways of pooling that Sentence Transformers has, by their field in the files and their name in newer ones; ours, ""
/// for those that roux does not compute.
struct Way {
  const char *field, *name, *own;
};
constexpr Way kWays[] = {{"pooling_mode_cls_token", "cls", "cls"},
                         {"pooling_mode_mean_tokens", "mean", "mean"},
                         {"pooling_mode_lasttoken", "lasttoken", "last"},
                         {"pooling_mode_max_tokens", "max", ""},
                         {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", ""},
                         {"pooling_mode_weightedmean_tokens", "weightedmean", ""}};

Failure refusal(const std::string& message, const std::string& hint) { return {message, hint, core::kExitUsage}; }

Result<Node> read(const std::string& file) {
  const auto text = core::read_file(file, kBytesMax);
  if (!text) return refusal(text.failure().message, "");
  auto parsed = core::parse_json(text.value());
  if (!parsed) return refusal(file + ": " + parsed.failure().message, "");
  return parsed;
}

bool is_true(const Node& object, const char* key) {
  const Node* value = object.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

/// `Pooling` of `sentence_transformers.models.Pooling`.
std::string class_of(const Node& module) {
  const Node* type = module.is_mapping() ? module.find("type") : nullptr;
  return type != nullptr && type->is_string() ? type->as_string().substr(type->as_string().rfind('.') + 1) : "";
}

Result<std::string> pooling_of(const std::string& file) {
  const Result<Node> config = read(file);
  if (!config) return config.failure();
  if (!config.value().is_mapping()) return refusal(file + " is not an object", "");
  const Node* mode = config.value().find("pooling_mode");
  std::vector<const Way*> ways;
  for (const Way& way : kWays) {
    const bool is_named = mode != nullptr && mode->is_string() && mode->as_string() == way.name;
    if (is_named || is_true(config.value(), way.field)) ways.push_back(&way);
  }
  if (ways.size() == 1 && *ways.front()->own != '\0') return std::string(ways.front()->own);
  std::vector<std::string> names;
  for (const Way* way : ways) names.emplace_back(way->name);
  return refusal(file + ": the pooling is " + (names.empty() ? "none that roux knows" : core::joined(names)) +
                     ", and roux computes one of mean, cls and lasttoken",
                 "set model.head and model.pooling to train it with another one");
}

Result<void> read_modules(const std::string& folder, SentenceFolder& found) {
  const std::string file = folder + "/" + kModules;
  const Result<Node> modules = read(file);
  if (!modules) return modules.failure();
  if (!modules.value().is_sequence()) return refusal(file + " is not a list of modules", "");
  for (std::size_t i = 0; i < modules.value().items().size(); ++i) {
    const Node& module = modules.value().items()[i];
    const std::string name = class_of(module);
    const Node* path = module.is_mapping() ? module.find("path") : nullptr;
    const std::string place = path != nullptr && path->is_string() ? path->as_string() : "";
    if (i == 0 && name == kTransformer && place.empty()) continue;
    if (i == 1 && name == kPoolingModule) {
      auto pooling = pooling_of(folder + "/" + place + "/config.json");
      if (!pooling) return pooling.failure();
      found.pooling = std::move(pooling.value());
      continue;
    }
    if (i == 2 && name == kNormalize) {
      found.normalize = true;
      continue;
    }
    return refusal(file + ": module " + std::to_string(i) + " is " + core::quote(name) + " in " + core::quote(place) +
                       ", and roux computes a Transformer in the folder itself, a Pooling, and a Normalize or none",
                   "set model.head to train the model without it");
  }
  if (found.pooling.empty()) return refusal(file + " lacks a module Pooling", "set model.head and model.pooling");
  return {};
}

}  // namespace

bool is_sentence_folder(const std::string& folder) {
  std::error_code failed;
  return !folder.empty() && fs::is_regular_file(fs::path(folder) / kModules, failed);
}

Result<SentenceFolder> read_sentence_folder(const std::string& folder) {
  SentenceFolder found;
  if (auto modules = read_modules(folder, found); !modules) return modules.failure();
  std::error_code failed;
  const std::string of_model = folder + "/" + kOfModel, of_all = folder + "/" + kOfAll;
  if (fs::is_regular_file(of_model, failed)) {
    const Result<Node> config = read(of_model);
    if (!config) return config.failure();
    const Node* length = config.value().is_mapping() ? config.value().find("max_seq_length") : nullptr;
    if (length != nullptr && length->is_integer() && length->as_integer() > 0)
      found.max_seq_length = length->as_integer();
    if (config.value().is_mapping() && is_true(config.value(), "do_lower_case")) {
      return refusal(of_model + ": do_lower_case is true, and roux writes no text in lower case before the tokenizer",
                     "let the tokenizer do it, or set do_lower_case to false");
    }
  }
  if (fs::is_regular_file(of_all, failed)) {
    const Result<Node> config = read(of_all);
    if (!config) return config.failure();
    const Node* prompt = config.value().is_mapping() ? config.value().find("default_prompt_name") : nullptr;
    if (prompt != nullptr && prompt->is_string()) {
      return refusal(of_all + ": default_prompt_name is " + core::quote(prompt->as_string()) +
                         ", and roux puts no prompt before a text",
                     "set it to null, and write the prompt into the texts");
    }
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> sentence_files(const SentenceFolder& folder, std::int64_t width) {
  const auto module = [](int number, const std::string& path, const char* name) {
    Node one = Node::mapping();
    one.set("idx", Node::integer(number));
    one.set("name", Node::string(std::to_string(number)));
    one.set("path", Node::string(path));
    one.set("type", Node::string(std::string("sentence_transformers.models.") + name));
    return one;
  };
  Node modules = Node::sequence({module(0, "", kTransformer), module(1, "1_Pooling", kPoolingModule)});
  if (folder.normalize) modules.items().push_back(module(2, "2_Normalize", kNormalize));
  Node pooling = Node::mapping(), of_model = Node::mapping(), of_all = Node::mapping();
  pooling.set("word_embedding_dimension", Node::integer(width));
  for (const Way& way : kWays) pooling.set(way.field, Node::boolean(folder.pooling == way.own));
  pooling.set("include_prompt", Node::boolean(true));
  of_model.set("max_seq_length", folder.max_seq_length ? Node::integer(*folder.max_seq_length) : Node::null());
  of_model.set("do_lower_case", Node::boolean(false));
  of_all.set("prompts", Node::mapping());
  of_all.set("default_prompt_name", Node::null());
  of_all.set("similarity_fn_name", Node::string("cosine"));
  const auto text = [](const Node& node) { return core::to_json(node) + "\n"; };
  return {{kModules, text(modules)}, {kPooling, text(pooling)}, {kOfModel, text(of_model)}, {kOfAll, text(of_all)}};
}

}  // namespace runner::pretrained
