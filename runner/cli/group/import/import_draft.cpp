#include "runner/cli/group/import/import_draft.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr ImportWords kOptimizers[] = {
    {"adamw_torch", "adamw"},
    {"adamw_torch_fused", "adamw"},
    {"adamw_hf", "adamw"},
    {"adamw_8bit", "adamw"},
    {"adamw_bnb_8bit", "adamw"},
    {"adamw_apex_fused", "adamw"},
    {"paged_adamw", "adamw"},
    {"paged_adamw_8bit", "adamw"},
    {"paged_adamw_32bit", "adamw"},
    {"adamw_torch_8bit", "adamw"},
    {"adafactor", "adafactor"},
    {"sgd", "sgd"},
    {"adagrad", "adagrad"},
    {"rmsprop", "rmsprop"},
    {"lion_pytorch", "lion"},
    {"lion_32bit", "lion"},
    {"lion_8bit", "lion"},
    {"paged_lion_32bit", "lion"},
    {"paged_lion_8bit", "lion"},
    {"muon", "muon"},
    {"lomo", "lomo"},
    {"adalomo", "adalomo"},
    {"schedule_free_adamw", "adamw_schedule_free"},
    {"schedule_free_sgd", "sgd_schedule_free"},
};

}  // namespace

void ImportDraft::put(const std::string& path, Node value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return void(recipe_.set(path, std::move(value)));
  Node block = recipe_.find(path.substr(0, dot)) != nullptr ? *recipe_.find(path.substr(0, dot)) : Node::mapping();
  block.set(path.substr(dot + 1), std::move(value));
  recipe_.set(path.substr(0, dot), std::move(block));
}

Node ImportDraft::ordered() const {
  Node sorted = Node::mapping();
  for (const char* key :
       {"recipe_version", "run_name", "seed", "output_dir", "init_from", "adapters", "tokenizer", "data", "loss"}) {
    if (const Node* value = recipe_.find(key)) sorted.set(key, *value);
  }
  for (const Node::Entry& entry : recipe_.entries()) {
    if (sorted.find(entry.key) == nullptr) sorted.set(entry.key, entry.value);
  }
  return sorted;
}

bool asks_for_something(const Node& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return false;
  if (value.is_sequence()) return !value.items().empty();
  if (value.is_mapping()) return !value.entries().empty();
  return !value.is_string() || !value.as_string().empty();
}

void take_sharding(const Node& config, Node& recipe, core::Diagnostics& diagnostics) {
  std::vector<resolve::ShardingWord> fsdp, deepspeed;
  const Node* text = config.find("fsdp");
  const bool is_without = text != nullptr && !asks_for_something(*text);  // whatever fsdp_config says
  for (const Node::Entry& entry : config.entries()) {
    if (!asks_for_something(entry.value)) continue;
    if (entry.key == "deepspeed") deepspeed = resolve::deepspeed_words(entry, diagnostics, core::Severity::kWarning);
    if (is_without || (entry.key != "fsdp" && entry.key != "fsdp_config")) continue;
    for (resolve::ShardingWord& word : resolve::fsdp_words(entry, diagnostics, core::Severity::kWarning))
      fsdp.push_back(std::move(word));
  }
  for (const resolve::ShardingWord& word : deepspeed) {
    if (word.field != "scheduler" || word.value.find("type") == nullptr) continue;
    const Node* steps = recipe.at_path("lr_scheduler.warmup_steps");
    Node schedule = Node::mapping();
    if (steps != nullptr) schedule.set("warmup_steps", *steps);
    recipe.set("lr_scheduler", std::move(schedule));
  }
  const resolve::ShardingOptions options{
      .missing = core::Severity::kWarning, .tells = false, .replaces_defaults = true};
  const auto& components = registry::Registry::builtin();
  if (!fsdp.empty()) resolve::apply_fsdp(fsdp, recipe, options, components, diagnostics);
  if (!deepspeed.empty()) resolve::apply_deepspeed(deepspeed, recipe, options, components, diagnostics);
}

std::string model_path(const std::string& name) {
  std::error_code failed;
  // Names from the time before models had owners.
  constexpr std::pair<const char*, const char*> kOld[] = {{"gpt2", "openai-community/gpt2"},
                                                          {"gpt2-medium", "openai-community/gpt2-medium"},
                                                          {"gpt2-large", "openai-community/gpt2-large"},
                                                          {"gpt2-xl", "openai-community/gpt2-xl"},
                                                          {"distilgpt2", "distilbert/distilgpt2"}};
  for (const auto& [old, present] : kOld) {
    if (name == old && !std::filesystem::exists(name, failed)) return std::string("hf://") + present;
  }
  const bool of_hub = std::count(name.begin(), name.end(), '/') == 1 && name.front() != '.' && name.front() != '/' &&
                      !std::filesystem::exists(name, failed);
  return of_hub ? "hf://" + name : name;
}

std::string percent_of(double part) {
  std::string text = core::to_json(Node::floating(std::round(1000 * part) / 10), -1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "%";
}

Node joined_sets(std::vector<Node> sets, const std::string& split) {
  for (Node& set : sets) {
    if (!split.empty()) set.set("split", Node::string(split));
  }
  if (sets.size() == 1) return sets.front();
  Node all = Node::mapping();
  all.set("type", Node::string("concat"));
  all.set("sets", Node::sequence(std::move(sets)));
  return all;
}

std::optional<std::string> word_of(const char* key, const Node& value, std::span<const ImportWords> words,
                                   core::Diagnostics& diagnostics) {
  const std::string text = core::lower(value.scalar_text());
  std::vector<std::string> known;
  for (const auto& [word, ours] : words) {
    if (text == word || text == ours) return ours;
    known.emplace_back(word);
  }
  const std::string near = core::closest(text, known);
  diagnostics.error(value.location(), std::string(key) + " " + value.scalar_text() + " has no equivalent",
                    near.empty() ? "use one of " + core::joined(known) : "did you mean " + near + "?");
  return std::nullopt;
}

std::span<const ImportWords> imported_optimizers() { return kOptimizers; }

std::optional<std::string> optimizer_of(const char* key, const Node& value, core::Diagnostics& diagnostics) {
  const auto found = word_of(key, value, kOptimizers, diagnostics);
  if (found && value.scalar_text().find("8bit") != std::string::npos) {
    diagnostics.notice(value.location(), std::string(key) + " " + value.scalar_text() + " becomes " + *found +
                                             ": its state stays in 32 bits");
  }
  return found;
}

}  // namespace runner::cli
