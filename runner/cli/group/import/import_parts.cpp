#include "runner/cli/group/import/import_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runner/registry/registry.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"
#include "runner/words/draft.h"

namespace runner::cli {
namespace {

using core::Node;
using words::asks_for_something;

}  // namespace

void take_sharding(const Node& config, Node& recipe, core::Diagnostics& diagnostics) {
  std::vector<resolve::ShardingWord> fsdp, deepspeed;
  const Node* text = config.find("fsdp");
  const bool is_without = text != nullptr && !asks_for_something(*text);  // whatever fsdp_config says
  for (const Node::Entry& entry : config.entries()) {
    const bool is_fsdp_list = entry.key == "fsdp" && entry.value.is_sequence();
    if (!asks_for_something(entry.value) && (!entry.value.is_sequence() || is_fsdp_list)) continue;
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

std::string percent_of(double part) {
  std::string text = core::to_json(Node::floating(std::round(1000 * part) / 10), -1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text + "%";
}

Node joined_sets(std::vector<Node> sets, const SetMixture& mixture) {
  if (sets.size() == 1) return sets.front();
  Node all = Node::mapping();
  all.set("type", Node::string("concat"));
  if (!mixture.weights.empty() && mixture.weights.size() == sets.size()) {
    all.set("weights", Node::sequence(mixture.weights));
    all.set("stopping", Node::string(mixture.stopping));
  }
  all.set("sets", Node::sequence(std::move(sets)));
  return all;
}

}  // namespace runner::cli
