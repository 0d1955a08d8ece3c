#include "runner/gguf/pre_tokenizers.h"

#include <algorithm>
#include <optional>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::gguf {
namespace {

using core::Failure;
using core::Node;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<PreTokenizer>& all() {
  static const std::vector<PreTokenizer> table = {
      {"gpt-2", false, false, "", {"phi-2", "mellum", "exaone4", "olmo", "jais", "modern-bert", "mpt"}},
      {"smollm", false, true, "", {"starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
      {"llama-bpe", true, false, kLlama3, {"llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}},
      {"dbrx", false, false, kLlama3, {"smaug-bpe", "chatglm-bpe", "glm4"}},
      {"qwen2", false, false, kQwen2, {"deepseek-r1-qwen", "megrez", "hunyuan", "stablelm2", "kormo"}},
      {"tekken", true, false, kTekken, {}},
  };
  return table;
}

/// The steps of a `pre_tokenizer`, in order.
std::vector<const Node*> steps_of(const Node& pre) {
  if (!pre.is_mapping()) return {};
  const Node *type = pre.find("type"), *list = pre.find("pretokenizers");
  if (type == nullptr || !type->is_string() || type->as_string() != "Sequence") return {&pre};
  std::vector<const Node*> steps;
  if (list != nullptr) {
    for (const Node& item : list->items()) steps.push_back(&item);
  }
  return steps;
}

std::string type_of(const Node& step) {
  const Node* type = step.find("type");
  return type != nullptr && type->is_string() ? type->as_string() : "";
}

bool flag(const Node& step, const char* key, bool otherwise) {
  const Node* value = step.find(key);
  return value != nullptr && value->is_bool() ? value->as_bool() : otherwise;
}

/// What pieces it makes of a text that its pattern covers wholly; nothing for another kind of step.
std::optional<std::string> pattern_of(const Node& step) {
  if (type_of(step) != "Split") return std::nullopt;
  const Node *regex = step.at_path("pattern.Regex"), *behavior = step.find("behavior");
  if (regex == nullptr || !regex->is_string() || behavior == nullptr || !behavior->is_string()) return std::nullopt;
  const bool inverted = flag(step, "invert", false);
  const std::string how = behavior->as_string();
  if (how == "Isolated" || (how == "Removed" && inverted)) return regex->as_string();
  return std::nullopt;
}

struct Steps {
  bool digits = false;
  std::string pattern;
};

std::optional<Steps> known_steps(const Node& pre) {
  std::vector<const Node*> steps = steps_of(pre);
  if (steps.empty()) return std::nullopt;
  const Node& last = *steps.back();
  if (type_of(last) != "ByteLevel" || flag(last, "add_prefix_space", true)) return std::nullopt;
  const bool by_pattern = flag(last, "use_regex", true);
  steps.pop_back();
  Steps found;
  if (!steps.empty() && type_of(*steps.front()) == "Digits" && flag(*steps.front(), "individual_digits", false)) {
    found.digits = true;
    steps.erase(steps.begin());
  }
  if (by_pattern) return steps.empty() ? std::optional(found) : std::nullopt;
  if (steps.size() != 1) return std::nullopt;
  const auto pattern = pattern_of(*steps.front());
  if (!pattern) return std::nullopt;
  found.pattern = *pattern;
  return found;
}

Node mapping(std::vector<std::pair<const char*, Node>> fields) {
  Node made = Node::mapping();
  for (auto& [key, value] : fields) made.set(key, std::move(value));
  return made;
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& one : all()) {
    if (name == one.name) return &one;
    if (std::any_of(one.alias.begin(), one.alias.end(), [name](const char* other) { return name == other; })) {
      return &one;
    }
  }
  return nullptr;
}

core::Result<const PreTokenizer*> pre_tokenizer_of(const Node& file) {
  const Node *pre = file.find("pre_tokenizer"), *ignore = file.at_path("model.ignore_merges");
  const bool ignore_merges = ignore != nullptr && ignore->is_bool() && ignore->as_bool();
  const auto steps = known_steps(pre != nullptr ? *pre : Node());
  if (steps) {
    for (const PreTokenizer& one : all()) {
      if (steps->digits == one.digits && steps->pattern == one.pattern && ignore_merges == one.ignore_merges) {
        return &one;
      }
    }
  }
  return Failure{"llama.cpp has no name for how this tokenizer splits a text (tokenizer.ggml.pre)",
                 "it has one for the tokenizers of GPT-2, SmolLM, Llama 3, Qwen and Mistral Nemo, and of Llama 2 and "
                 "Mistral",
                 core::kExitUsage};
}

Node written(const PreTokenizer& one) {
  std::vector<Node> steps;
  if (one.digits) {
    steps.push_back(mapping({{"type", Node::string("Digits")}, {"individual_digits", Node::boolean(true)}}));
  }
  const bool by_pattern = *one.pattern == '\0';
  if (!by_pattern) {
    steps.push_back(mapping({{"type", Node::string("Split")},
                             {"pattern", mapping({{"Regex", Node::string(one.pattern)}})},
                             {"behavior", Node::string("Isolated")},
                             {"invert", Node::boolean(false)}}));
  }
  steps.push_back(mapping({{"type", Node::string("ByteLevel")},
                           {"add_prefix_space", Node::boolean(false)},
                           {"trim_offsets", Node::boolean(true)},
                           {"use_regex", Node::boolean(by_pattern)}}));
  if (steps.size() == 1) return std::move(steps.front());
  return mapping({{"type", Node::string("Sequence")}, {"pretokenizers", Node::sequence(std::move(steps))}});
}

}  // namespace runner::gguf
