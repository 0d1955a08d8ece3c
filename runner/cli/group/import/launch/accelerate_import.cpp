#include "runner/cli/group/import/launch/accelerate_import.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/settings.h"
#include "runner/resolve/sharding/words.h"
#include "runner/words/table.h"

namespace runner::cli {
namespace {

using core::lower;
using core::Node;
using words::Reader;
using Kind = words::Outcome::Kind;

const words::Word& word_of(std::string_view key) { return *words::find(words::table_of("accelerate").words, key); }

/// As in Accelerate: with use_cpu, training runs on CPUs whatever the options for devices are.
bool is_on_cpu(const Reader& reader) { return reader.get("use_cpu") != nullptr || reader.get("cpu") != nullptr; }

/// 1 where the file does not say.
std::int64_t processes_of(Reader& reader) {
  const Node* count = reader.draft().find("launch.num_processes");
  return count != nullptr && count->is_integer() ? count->as_integer() : 1;
}

std::string type_of(const Node& config) {
  const Node* type = config.find("distributed_type");
  return type != nullptr ? lower(type->scalar_text()) : "";
}

/// The GPUs that `gpu_ids` names; none for `all`, and after an error.
std::vector<Node> gpus_of(Reader& reader) {
  const Node* ids = reader.get("gpu_ids");
  std::vector<Node> numbers;
  if (ids == nullptr || lower(ids->scalar_text()) == "all") return numbers;
  const std::string text = ids->scalar_text();
  for (const Node& item : words::items_of(Node::string(text))) {
    const std::string& number = item.as_string();
    const bool is_number = number.size() <= 2 && number.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) numbers.push_back(Node::integer(std::stoi(number)));
    if (is_number) continue;
    reader.refuse(*ids, "gpu_ids", "gpu_ids must be all, or numbers of GPUs with commas between them, got " + text,
                  "write gpu_ids: 0,1 or the like");
    return {};
  }
  return numbers;
}

void take_device(Reader& reader) {
  if (is_on_cpu(reader)) {
    const std::string type = type_of(reader.config());
    for (const char* key : {"gpu_ids", "multi_gpu"}) reader.note(key, Kind::kNoEffect, "the training is on the CPU");
    if (type == "multi_gpu") reader.note("distributed_type", Kind::kNoEffect, "the training is on the CPU");
    if (type == "fsdp" || type == "deepspeed") reader.note("distributed_type", Kind::kTaken, "parallelism");
    return reader.draft().put("device", Node::string("cpu"));
  }
  const Node* type = reader.get("distributed_type");
  const words::Outcome of_type =
      type != nullptr ? reader.outcome_of(word_of("distributed_type"), *type) : words::Outcome{.kind = Kind::kNoEffect};
  if (of_type.kind == Kind::kRefused && !of_type.is_fatal) {  // gpu_ids then names XPUs, NPUs, ...
    return reader.note("gpu_ids", Kind::kNoEffect, "there is no such device");
  }
  std::vector<Node> ids = gpus_of(reader);
  static constexpr const char* kOfGpus[] = {"multi_gpu", "use_fsdp", "use_deepspeed"};
  const bool asks =
      of_type.kind == Kind::kTaken ||
      std::any_of(std::begin(kOfGpus), std::end(kOfGpus), [&](const char* key) { return reader.get(key) != nullptr; });
  if (ids.empty() && !asks) return;
  if (ids.size() == 1 && processes_of(reader) <= 1)
    return reader.draft().put("device", Node::string("cuda:" + ids.front().scalar_text()));
  reader.draft().put("device", Node::string("cuda"));
  if (!ids.empty()) reader.draft().put("launch.gpu_ids", Node::sequence(std::move(ids)));
}

void take_precision(Reader& reader) {
  for (const char* key : {"fp16", "mixed_precision"}) {
    const Node* value = reader.config().find(key);
    if (value == nullptr || value->is_null()) continue;
    const words::Outcome outcome = reader.outcome_of(word_of(key), *value);
    if (outcome.kind != Kind::kTaken || !outcome.value) continue;
    Node mode = *outcome.value;
    // What the questionnaire writes for no answer has no place: FSDP's own policy replaces it.
    if (mode.as_string() != "32-true") mode.set_location(value->location());
    reader.draft().put("precision.mode", std::move(mode));
  }
}

/// Graphs are those of one process's GPU.
void take_graphs(Reader& reader) {
  const auto take = [&reader](const Node& block, const char* key, const std::string& prefix) {
    const Node* value = block.find(key);
    if (value == nullptr || is_on_cpu(reader)) return;
    const words::Outcome outcome = reader.outcome_of(word_of("dynamo_backend"), *value);
    if (outcome.kind != Kind::kTaken || !outcome.value) return;
    if (processes_of(reader) <= 1) return reader.draft().put("compile.cuda_graphs", *outcome.value);
    const std::string why = "the steps of several processes are not captured";
    reader.diagnostics().warning(value->location(),
                                 "dynamo_backend " + value->scalar_text() + " is not supported yet: " + why,
                                 "remove it; training runs without graphs");
    reader.note(prefix + key, Kind::kPlanned, why);
  };
  take(reader.config(), "dynamo_backend", "");
  const Node* section = reader.get("dynamo_config");
  if (section == nullptr || !section->is_mapping()) return;
  for (const char* key : {"dynamo_backend", "backend"}) take(*section, key, "dynamo_config.");
}

/// Several processes that share one copy, and several copies. A size of 1 is none.
void take_sizes(Reader& reader) {
  const Node* block = reader.get("parallelism_config");
  if (block == nullptr) return;
  if (!block->is_mapping()) {
    return reader.refuse(*block, "parallelism_config", "parallelism_config must be a mapping",
                         "write parallelism_config: {parallelism_config_dp_shard_size: 4}, or remove it");
  }
  reader.read_block(*block, word_of("parallelism_config").inner, "parallelism_config.", reader.draft());
  const std::string prefix = "parallelism_config_";
  const auto size = [&](const std::string& name) {
    const Node* value = block->find(prefix + name) != nullptr ? block->find(prefix + name) : block->find(name);
    return value != nullptr && value->scalar_text() != "1" && words::asks_for_something(*value) ? value : nullptr;
  };
  const Node *shard = size("dp_shard_size"), *copies = size("dp_replicate_size");
  // Without a place, so that what FSDP says of a strategy replaces it.
  if (shard != nullptr) reader.draft().put("parallelism.shard", Node::string("parameters"));
  if (shard != nullptr) reader.draft().put("parallelism.dp_shard_size", *shard);
  const bool is_sharded = shard != nullptr || type_of(reader.config()) == "fsdp" || reader.get("use_fsdp") != nullptr;
  if (copies == nullptr) return;
  if (is_sharded) return reader.draft().put("parallelism.dp_replicate_size", *copies);
  for (const std::string& key : {prefix + "dp_replicate_size", std::string("dp_replicate_size")})
    reader.note("parallelism_config." + key, Kind::kNoEffect, "nothing is sharded: each process has a copy");
}

/// Which words of FSDP and DeepSpeed count: Accelerate reads those that `distributed_type` or a flag names, and of a
/// file without either all.
struct Sharding {
  bool asks_fsdp = false, asks_deepspeed = false, is_open = false;

  explicit Sharding(const Reader& reader) {
    const std::string type = type_of(reader.config());
    asks_fsdp = type == "fsdp" || reader.get("use_fsdp") != nullptr;
    asks_deepspeed = type == "deepspeed" || reader.get("use_deepspeed") != nullptr;
    is_open = type.empty() && !asks_fsdp && !asks_deepspeed;
  }
  bool counts(const std::string& key) const {
    return is_open || (resolve::is_fsdp_word(key) ? asks_fsdp : asks_deepspeed);
  }
};

bool is_of_plugin(const std::string& key) { return resolve::is_fsdp_word(key) || resolve::is_deepspeed_word(key); }

void note_sharding(Reader& reader) {
  const Sharding sharding(reader);
  const std::string type = core::upper(type_of(reader.config()));
  for (const Node::Entry& entry : reader.config().entries()) {
    if (is_of_plugin(entry.key) && !sharding.counts(entry.key))
      reader.note(entry.key, Kind::kNoEffect,
                  type.empty() ? "another flag says what is sharded" : "distributed_type is " + type);
  }
}

/// Sets what FSDP's and DeepSpeed's words come to.
void apply_sharding(const Reader& reader, Node& recipe, core::Diagnostics& diagnostics) {
  const Sharding sharding(reader);
  const Node& config = reader.config();
  std::vector<resolve::ShardingWord> fsdp, deepspeed;
  for (const Node::Entry& entry : config.entries()) {
    if (!is_of_plugin(entry.key) || !sharding.counts(entry.key)) continue;
    const bool is_fsdp = resolve::is_fsdp_word(entry.key);
    auto found = is_fsdp ? resolve::fsdp_words(entry, diagnostics) : resolve::deepspeed_words(entry, diagnostics);
    std::move(found.begin(), found.end(), std::back_inserter(is_fsdp ? fsdp : deepspeed));
  }
  const Node* type = config.find("distributed_type");
  const core::Location& at = (type != nullptr ? *type : config).location();
  if (sharding.asks_fsdp && fsdp.empty()) fsdp.push_back({"version", "FSDP", at, Node::null(), "FSDP", at});
  // The plugin's own stage, where no file says all.
  const Node* plugin = config.find("deepspeed_config");
  const bool has_file = plugin != nullptr && plugin->find("deepspeed_config_file") != nullptr;
  const bool has_stage =
      std::any_of(deepspeed.begin(), deepspeed.end(), [](const auto& word) { return word.field.starts_with("zero_"); });
  if (sharding.asks_deepspeed && !has_file && !has_stage)
    deepspeed.push_back({"zero_stage", "DEEPSPEED without a zero_stage", at, Node::integer(2, at), "DEEPSPEED", at});
  resolve::ShardingOptions options{.missing = core::Severity::kWarning, .tells = false, .replaces_defaults = true};
  const auto& components = registry::Registry::builtin();
  if (!fsdp.empty()) resolve::apply_fsdp(fsdp, recipe, options, components, diagnostics);
  options.replaces_defaults = false;
  if (!deepspeed.empty()) resolve::apply_deepspeed(deepspeed, recipe, options, components, diagnostics);
}

}  // namespace

Node recipe_of_accelerate(const Node& config, std::vector<words::Row>& rows, core::Diagnostics& diagnostics) {
  // `accelerate env` prints null so.
  Node written = Node::mapping(config.location());
  for (const Node::Entry& entry : config.entries()) {
    const bool is_none = entry.value.is_string() && entry.value.as_string() == "None";
    if (!is_none) written.set(entry.key, entry.value, entry.key_location);
  }
  static const std::map<std::string, Reader::Rule> rules = {
      {"device", take_device}, {"precision", take_precision}, {"graphs", take_graphs},
      {"sizes", take_sizes},   {"sharding", note_sharding},
  };
  Reader reader(words::table_of("accelerate"), written, rules, diagnostics);
  reader.read();
  rows = reader.rows();
  Node recipe = reader.draft().ordered();
  apply_sharding(reader, recipe, diagnostics);
  return recipe;
}

}  // namespace runner::cli
