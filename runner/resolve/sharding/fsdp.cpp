#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/resolve/sharding/setting_words.h"
#include "runner/resolve/sharding/settings.h"

namespace runner::resolve {
namespace {

using core::lower;
using core::Node;

constexpr const char* kMode = "precision.mode";
constexpr std::string_view kFloat32 = "32-true";

/// The parts of an expression between `|`.
std::vector<Node> alternatives(const Node& expression) {
  std::vector<Node> parts;
  std::istringstream text(expression.scalar_text());
  for (std::string part; std::getline(text, part, '|');) parts.push_back(Node::string(part, expression.location()));
  return parts;
}

/// A pattern for the parameters of a module, given by its name or by an expression that says no more than a pattern
/// can. Nothing for another.
std::optional<std::string> parameters_of(const Node& module, bool is_name) {
  static constexpr std::pair<std::string_view, std::string_view> kExpressions[] = {
      {".*", "*"}, {".+", "*"}, {"\\.", "."}, {"\\d+", "*"}, {"[0-9]+", "*"}};
  const std::string written = module.scalar_text();
  std::string_view rest = core::trimmed(written);
  if (!is_name && rest.starts_with("^")) rest.remove_prefix(1);
  if (!is_name && rest.ends_with("$")) rest.remove_suffix(1);
  std::string pattern;
  while (!rest.empty()) {
    const auto* const known = std::find_if(std::begin(kExpressions), std::end(kExpressions),
                                           [&](const auto& one) { return !is_name && rest.starts_with(one.first); });
    if (known != std::end(kExpressions)) {
      pattern += known->second;
      rest.remove_prefix(known->first.size());
      continue;
    }
    if (std::string_view(is_name ? "\\[](){}+?^$|" : "\\[](){}+?^$*").find(rest.front()) != std::string_view::npos)
      return std::nullopt;
    pattern += rest.front();
    rest.remove_prefix(1);
  }
  if (pattern.empty()) return std::nullopt;
  // Whoever names a parameter means it.
  const bool is_complete = pattern.ends_with("*") || pattern.ends_with(".weight") || pattern.ends_with(".bias");
  return is_complete ? pattern : pattern + ".*";
}

class Fsdp : public SettingWords {
 public:
  using SettingWords::SettingWords;

  void take_all() {
    sort();
    if (const ShardingWord* version = read("version")) {
      const auto number = number_of(version->value);
      if (!number || (*number != 1 && *number != 2)) must_be(*version, "1 or 2");
    }
    take_strategy();
    take_units();
    take_ignored();
    for (const char* name : {"transformer_layer_cls_to_wrap", "transformer_cls_names_to_wrap"}) {
      if (const ShardingWord* word = read(name)) take_layers(*word);
    }
    take_prefetch();
    take_precision();
    take_state_dict();
    tell();
  }

 private:
  static constexpr const char* kStrategy = "sharding_strategy";
  static constexpr const char* kPolicy = "mixed_precision_policy";

  std::int64_t machines() const {
    const Node* count = recipe_.at_path("launch.num_machines");
    if (count != nullptr && count->is_integer()) return count->as_integer();
    const Node* hosts = recipe_.at_path("launch.hosts");
    return hosts != nullptr && hosts->is_sequence() ? static_cast<std::int64_t>(hosts->items().size()) : 1;
  }

  /// The mode that computes in a type of torch; nothing for another type.
  std::optional<std::string> mode_of(const Node& type) const {
    const words::Outcome* outcome = listed(kPolicy, type);
    return outcome != nullptr ? std::optional(outcome->value->as_string()) : std::nullopt;
  }

  /// Sets precision.mode from a torch dtype. Reports an error and returns false if no mode computes in that dtype.
  bool place_mode(const ShardingWord& word, const char* types) {
    const auto mode = mode_of(word.value);
    if (!mode) {
      must_be(word, types);
      return false;
    }
    return place(word, kMode, Node::string(*mode, word.value.location()));
  }

  /// What is not float32 by the policy, and is here.
  void tell_float32(const ShardingWord& word, const char* what) {
    if (mode_of(word.value) == kFloat32) return;
    diagnostics_.notice(word.key_location, word.written + ": " + word.value.scalar_text() + ": " + what);
  }

  void take_precision() {
    static constexpr const char* kTypes = "bfloat16, float16, float32 or null";
    static constexpr std::pair<const char*, const char*> kParts[] = {
        {"reduce_dtype", "gradients are added up in float32, whatever type travels"},
        {"buffer_dtype", "buffers stay float32"},
        {"output_dtype", "losses are computed in float32"}};
    const std::string section = kPolicy;
    const ShardingWord *policy = read(section), *computed = read(section + ".param_dtype");
    if (policy != nullptr && !asks_nothing(policy->value) &&
        place_mode(*policy, "bf16, fp16 or fp32, or a mapping with param_dtype"))
      tell_float32(*policy, "gradients are added up in float32, and buffers stay float32");
    if (computed != nullptr && !asks_nothing(computed->value)) place_mode(*computed, kTypes);
    for (const auto& [name, what] : kParts) {
      const ShardingWord* word = read(section + "." + name);
      if (word == nullptr || asks_nothing(word->value)) continue;
      if (!mode_of(word->value)) {
        must_be(*word, kTypes);
      } else {
        tell_float32(*word, what);
      }
    }
  }

  /// How FSDP saves; without anything sharded there are no parts.
  void take_state_dict() {
    const ShardingWord* word = read("state_dict_type");
    if (word == nullptr) return;
    const words::Outcome* type = value_of("state_dict_type", word->value);
    if (type == nullptr) return must_be_named(*word, word->field);
    Node is_sharded = *type->value;
    if (is_sharded.as_bool() && !shards()) return;
    is_sharded.set_location(word->value.location());
    place(*word, "checkpoint.sharded", std::move(is_sharded));
  }

  /// A value that is listed, or the number of one, counted from 1.
  const words::Outcome* value_of(const std::string& field, const Node& value) const {
    const auto number = number_of(value);
    const std::vector<std::string> names = names_of(field);
    for (std::size_t i = 0; number && i < names.size(); ++i) {
      if (*number == static_cast<double>(i + 1)) return listed(field, Node::string(names[i]));
    }
    return listed(field, value);
  }

  /// The name of a strategy; "" where the value is none.
  std::string strategy_of(const Node& value) const {
    const words::Outcome* found = value_of(kStrategy, value);
    for (const std::string& name : names_of(kStrategy)) {
      if (found != nullptr && listed(kStrategy, Node::string(name)) == found) return lower(name);
    }
    return "";
  }

  /// False where the value names no strategy.
  bool place_strategy(const ShardingWord& word) {
    const words::Outcome* strategy = value_of(kStrategy, word.value);
    if (strategy == nullptr) return false;
    Node shard = *strategy->value;
    shard.set_location(word.value.location());
    place(word, "parallelism.shard", std::move(shard));
    const bool has_sizes = written_at("parallelism", "dp_replicate_size") || written_at("parallelism", "dp_shard_size");
    if (strategy_of(word.value).starts_with("hybrid") && !has_sizes && machines() > 1)
      place(word, "parallelism.dp_replicate_size", Node::integer(machines(), word.value.location()));
    return true;
  }

  /// The Trainer's `fsdp` is a list of names, of which one is a strategy.
  void check_other_names(const ShardingWord& strategy) {
    const std::string first = strategy_of(strategy.value);
    for (const ShardingWord& word : words_) {
      if (word.field != strategy.field || word.written != strategy.written || first.empty()) continue;
      const std::string other = strategy_of(word.value);
      if (other.empty()) must_be_named(word, kStrategy, "auto_wrap, offload, 1 to 5, or ");
      if (!other.empty() && other != first)
        diagnostics_.error(word.value.location(), word.written + " names two strategies, " + first + " and " + other,
                           "keep one of the two");
    }
  }

  void take_strategy() {
    const ShardingWord *strategy = read(kStrategy), *reshard = read("reshard_after_forward");
    if (strategy != nullptr && !place_strategy(*strategy)) must_be_named(*strategy, kStrategy, "1 to 5, or ");
    if (strategy != nullptr) check_other_names(*strategy);
    if (reshard != nullptr) {
      const auto flag = flag_of(reshard->value);
      if (!flag) {
        if (reshard->value.is_number() || !place_strategy(*reshard))
          must_be_named(*reshard, kStrategy, "true, false, ");
        return;
      }
      if (strategy == nullptr || *flag) place_shard(*reshard, "parameters");
      const Node* shard = recipe_.at_path("parallelism.shard");
      // With other strategies no parameters are gathered.
      if (!*flag && shard != nullptr && shard->is_string() && shard->as_string() == "parameters")
        place(*reshard, "parallelism.reshard_after_forward", Node::boolean(false, reshard->value.location()));
      return;
    }
    if (strategy != nullptr || words_.empty()) return;
    ShardingWord usual = words_.front();
    usual.written = usual.top;
    usual.key_location = usual.top_location;
    usual.value = Node::string("FULL_SHARD", usual.key_location);
    place_shard(keep(usual), "parameters");
  }

  /// FSDP's modules that are wrapped by themselves. With other strategies there is nothing to gather.
  void take_units() {
    const ShardingWord *policy = read("auto_wrap_policy"), *least = read("min_num_params");
    if (!gathers_parameters()) {
      for (const ShardingWord* word : {policy, least}) {
        if (word != nullptr) leave(*word);
      }
      return;
    }
    const double number = least != nullptr ? number_of(least->value).value_or(-1) : 0;
    if (number < 0 || number != std::floor(number)) return must_be(*least, "a whole number, at least 0");
    // `true`, as of the Trainer's auto_wrap, is of either kind.
    if (policy == nullptr || flag_of(policy->value) || asks_nothing(policy->value)) return place_joined(least, number);
    const words::Outcome* unit = listed("auto_wrap_policy", policy->value);
    if (unit == nullptr) return must_be_named(*policy, policy->field);
    const bool is_joined = number > 0 || written_at("parallelism", "min_num_params").has_value();
    if (core::upper(policy->value.scalar_text()) == "SIZE_BASED_WRAP" && is_joined) return place_joined(least, number);
    if (number > 0) leave(*least);
    place(*policy, "parallelism.unit", Node::string(unit->value->as_string(), policy->value.location()));
  }

  /// Modules that are not sharded: names, or an expression that whole names match.
  void take_ignored() {
    const ShardingWord* word = read("ignored_modules");
    if (word == nullptr || asks_nothing(word->value)) return;
    if (!shards()) return leave(*word);
    const Node& value = word->value;
    const std::vector<Node> modules = value.is_sequence() ? value.items()
                                      : value.is_string() ? alternatives(value)
                                                          : std::vector<Node>{value};
    std::vector<Node> patterns;
    for (const Node& module : modules) {
      const auto pattern = module.is_string() ? parameters_of(module, value.is_sequence()) : std::nullopt;
      if (!pattern) {
        ShardingWord wrong = *word;
        if (value.is_sequence()) wrong.value = module;
        return must_be(wrong, "names of modules such as lm_head, or an expression such as .*mlp|lm_head",
                       "write parallelism: {replicate: [...]} with names of parameters, in which `*` matches any text");
      }
      patterns.push_back(Node::string(*pattern, module.location()));
    }
    place(*word, "parallelism.replicate", Node::sequence(std::move(patterns), value.location()));
  }

  /// Which units are gathered ahead.
  void take_prefetch() {
    const ShardingWord *forward = read("forward_prefetch"), *limit = read("limit_all_gathers");
    for (const char* name : {"backward_prefetch", "backward_prefetch_policy"}) {
      if (const ShardingWord* word = read(name)) take_backward_prefetch(*word);
    }
    const bool has_next = gathers_parameters() && !gathers_model();
    for (const ShardingWord* word : {forward, limit}) {
      if (word == nullptr) continue;
      const auto flag = flag_of(word->value);
      if (!flag) {
        must_be(*word, "true or false");
      } else if (!has_next || (!*flag && (word == forward || !gathers_ahead()))) {
        leave(*word);  // without its forward_prefetch FSDP gathers while the unit before runs, too
      } else if (word == forward) {
        place(*word, "parallelism.forward_prefetch", Node::boolean(*flag, word->value.location()));
      } else {
        place(*word, "parallelism.prefetch_units", Node::integer(*flag ? 1 : 2, word->value.location()));
      }
    }
  }

  void take_backward_prefetch(const ShardingWord& word) {
    const words::Outcome* order = listed(word.field, word.value);
    if (order == nullptr) return must_be_named(word, word.field);
    if (!gathers_parameters() || gathers_model() || is_off("reshard_after_forward")) return leave(word);
    place(word, "parallelism.backward_prefetch", Node::string(order->value->as_string(), word.value.location()));
  }

  bool gathers_ahead() const {
    const auto backward = written_at("parallelism", "backward_prefetch");
    const bool is_none = backward && backward->value.is_string() && backward->value.as_string() == "none";
    return !is_off("forward_prefetch") || (!is_none && !is_off("reshard_after_forward"));
  }

  /// Classes of Transformers; those of whole layers are blocks.
  void take_layers(const ShardingWord& word) {
    static constexpr std::string_view kEnds[] = {"block", "layer", "bottleneck", "stage"};
    if (asks_nothing(word.value)) return;
    std::vector<std::string> names;
    if (word.value.is_sequence()) {
      for (const Node& item : word.value.items()) names.push_back(item.scalar_text());
    } else {
      std::istringstream text(word.value.scalar_text());
      for (std::string name; std::getline(text, name, ',');) names.push_back(std::move(name));
    }
    for (const std::string& name : names) {
      const std::string text = lower(core::trimmed(name));
      const auto ends = [&text](std::string_view end) { return text.ends_with(end); };
      if (std::any_of(std::begin(kEnds), std::end(kEnds), ends)) continue;
      return missing(word, std::string(core::trimmed(name)) + " is not a layer class such as LlamaDecoderLayer",
                     "remove it, or name blocks in parallelism.unit_blocks, as [\"h.*\"] does");
    }
    leave(word);
  }

  void place_joined(const ShardingWord* word, double number) {
    if (number > 0) place(*word, "parallelism.min_num_params", number_node(number, word->value.location()));
  }
};

}  // namespace

void apply_fsdp(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
                const registry::Registry& registry, core::Diagnostics& diagnostics) {
  Fsdp(words::table_of("fsdp"), words, recipe, options, registry, diagnostics).take_all();
}

}  // namespace runner::resolve
