#include "runner/resolve/sharding/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/alias.h"
#include "runner/registry/wording.h"
#include "runner/resolve/sharding/fields.h"
#include "runner/resolve/sharding/hostfile.h"

namespace runner::resolve {
namespace {

using core::Location;
using core::lower;
using core::Node;
using registry::described;
using registry::enumerated;
using registry::is_override;
using registry::line_beside;
using Use = ShardingField::Use;

constexpr const char* kWarmup = "scheduler.params.warmup_num_steps";

bool is_auto(const Node& value) { return value.is_string() && lower(value.as_string()) == "auto"; }

/// A truth value, which Accelerate also writes as text; nothing for another value.
std::optional<bool> flag_of(const Node& value) {
  if (value.is_bool()) return value.as_bool();
  if (!value.is_string()) return std::nullopt;
  const std::string text = lower(value.as_string());
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  return std::nullopt;
}

/// A number, which may be written as text.
std::optional<double> number_of(const Node& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string() || value.as_string().empty()) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(value.as_string().c_str(), &end);
  return *end == '\0' && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// A value as roux writes it: a whole number where it is one.
Node number_node(double number, const Location& location) {
  const bool whole = std::floor(number) == number && std::abs(number) < 1e15;
  return whole ? Node::integer(static_cast<std::int64_t>(number), location) : Node::floating(number, location);
}

/// A copied value; a number that is written as text is one, and so is the whole 1e4 of JSON.
Node as_written(const Node& value) {
  const auto number = number_of(value);
  const bool is_power = value.is_number() && value.scalar_text().find_first_of("eE") != std::string::npos;
  const bool is_whole = number && std::floor(*number) == *number;
  return number && (value.is_string() || (is_power && is_whole)) ? number_node(*number, value.location()) : value;
}

/// `1` and `1.0` are one value.
bool is_same(const Node& a, const Node& b) {
  const auto left = number_of(a), right = number_of(b);
  if (left && right) return *left == *right;
  if (a.is_sequence() && b.is_sequence())
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), is_same);
  return a.same_value(b);
}

std::string shown(const Node& value) {
  if (value.is_null()) return "none";
  if (!value.is_sequence()) return value.is_mapping() ? "{...}" : value.scalar_text();
  std::string text;
  for (const Node& item : value.items())
    text += (text.empty() ? "" : ", ") + (item.is_mapping() ? core::to_json(item, -1) : item.scalar_text());
  return "[" + text + "]";
}

/// Words of one framework on their way into a recipe.
class Words {
 public:
  Words(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
        const registry::Registry& registry, core::Diagnostics& diagnostics)
      : words_(words), recipe_(recipe), options_(options), registry_(registry), diagnostics_(diagnostics) {}

  void fsdp() {
    const std::span<const ShardingField> tables[] = {fsdp_fields()};
    for (const ShardingWord& word : words_) sort(word, tables, "FSDP");
    if (const ShardingWord* version = read("version")) {
      const auto number = number_of(version->value);
      if (!number || (*number != 1 && *number != 2)) must_be(*version, "1 or 2");
    }
    take_strategy();
    take_units();
    if (const ShardingWord* again = read("activation_checkpointing")) {
      const auto flag = flag_of(again->value);
      if (!flag) must_be(*again, "true or false");
      if (flag && *flag) place(*again, "activation_checkpointing.mode", Node::string("full", again->value.location()));
    }
    take_state_dict();
    tell("FSDP");
  }

  void deepspeed() {
    const std::span<const ShardingField> tables[] = {deepspeed_plugin_fields(), deepspeed_fields()};
    for (const ShardingWord& word : words_) sort(word, tables, "DeepSpeed");
    for (const char* name : {"zero_stage", "zero_optimization.stage"}) take_stage(name);
    for (const char* name : {"zero_optimization.zero_hpz_partition_size", "zero_optimization.mics_shard_size"})
      take_group(name);
    take_hosts();
    take_clipping();
    take_optimizer();
    take_schedule();
    take_precision();
    tell("DeepSpeed");
  }

 private:
  using Tables = std::span<const std::span<const ShardingField>>;

  /// Takes a word, or each key of a section, as its row of the tables says.
  void sort(const ShardingWord& word, Tables tables, const char* framework) {
    const ShardingField* field = nullptr;
    bool is_section = false;
    std::vector<std::string> names;
    for (const auto& table : tables) {
      if (field == nullptr) field = find_field(table, word.field);
      for (const ShardingField& one : table) {
        is_section = is_section || std::string_view(one.name).starts_with(word.field + ".");
        const std::string_view name = one.name;
        for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
          names.emplace_back(name.substr(0, dot));  // a section
        names.emplace_back(name);
      }
    }
    if (is_section && word.value.is_mapping()) {
      for (const Node::Entry& entry : word.value.entries())
        sort({word.field + "." + entry.key, word.written + "." + entry.key, entry.key_location, entry.value, word.top,
              word.top_location},
             tables, framework);
      return;
    }
    // A row of a section is for the keys that have none.
    const std::size_t dot = word.field.rfind('.');
    for (const auto& table : tables) {
      if (field == nullptr && dot != std::string::npos) field = find_field(table, word.field.substr(0, dot));
    }
    if (field == nullptr && is_section && !asks_nothing(word.value)) return must_be(word, "a mapping");
    if (field == nullptr) return unknown(word, names, framework, is_section);
    take(word, *field);
  }

  void take(const ShardingWord& word, const ShardingField& field) {
    if (is_auto(word.value) && word.field == kWarmup && !written_at("lr_scheduler", "warmup_steps")) {
      place(word, field.key, Node::integer(0, word.value.location()));  // the Trainer's default, not DeepSpeed's
      return;
    }
    if (word.value.is_null() || is_auto(word.value)) return;
    switch (field.use) {
      case Use::kCopied: place(word, field.key, as_written(word.value)); return;
      case Use::kRead: found_.emplace(field.name, &keep(word)); return;
      case Use::kNoEffect:
        if (!asks_nothing(word.value)) idle_.push_back(keep(word));
        return;
      case Use::kRefused:
        if (!asks_nothing(word.value)) missing(word, field.note);
        return;
    }
  }

  void unknown(const ShardingWord& word, const std::vector<std::string>& names, const char* framework,
               bool is_section) {
    if (is_section) return;
    const std::string near = core::closest(word.field, names);
    diagnostics_.error(word.key_location, word.written + " is not a key of " + framework + " that roux knows",
                       near.empty() ? "remove it if training does not depend on it"
                                    : "did you mean " + near.substr(near.rfind('.') + 1) + "?");
  }

  void missing(const ShardingWord& word, const std::string& hint) {
    const std::string value = word.value.is_mapping() || word.value.is_sequence() ? "" : ": " + shown(word.value);
    diagnostics_.add({options_.missing, word.key_location, word.written + value + " has no equivalent", hint});
  }

  void must_be(const ShardingWord& word, const std::string& what, const std::string& hint = "") {
    diagnostics_.error(word.value.location(), word.written + " must be " + what + ", got " + described(word.value),
                       hint);
  }

  void must_be_strategy(const ShardingWord& word, const std::string& before) {
    static const std::vector<std::string> kNames = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                                    "HYBRID_SHARD_ZERO2"};
    const std::string near = word.value.is_string() ? core::closest(word.value.as_string(), kNames) : "";
    must_be(word, before + enumerated(kNames, "or"), near.empty() ? "" : "did you mean " + near + "?");
  }

  const ShardingWord& keep(const ShardingWord& word) {
    return *kept_.emplace_back(std::make_unique<ShardingWord>(word));
  }

  const ShardingWord* read(const std::string& name) const {
    const auto found = found_.find(name);
    return found == found_.end() ? nullptr : found->second;
  }

  /// What the recipe says at a path; nothing for null and `auto`.
  std::optional<Node::Entry> written_at(const std::string& section, const std::string& key) const {
    const Node* block = section.empty() ? &recipe_ : recipe_.at_path(section);
    if (block == nullptr) return std::nullopt;
    Node whole = *block;
    registry::expand_short_form(whole, section, registry_);
    const Node::Entry* entry = whole.find_entry(key);
    if (entry == nullptr || is_auto(entry->value)) return std::nullopt;
    // Null is a value where an override says it.
    return entry->value.is_null() && !is_override(*entry) ? std::nullopt : std::optional(*entry);
  }

  /// False after an error.
  bool place(const ShardingWord& word, const std::string& path, Node value) {
    const std::size_t dot = path.rfind('.');
    const std::string section = dot == std::string::npos ? "" : path.substr(0, dot), key = path.substr(dot + 1);
    auto other = written_at(section, key);
    if (other && options_.replaces_defaults && !other->value.location().known()) other.reset();
    if (other && is_same(other->value, value)) {
      note(path, value);
      return true;
    }
    const bool overrides = is_override({word.written, word.key_location, word.value});
    if (other && is_override(*other) != overrides) {
      if (is_override(*other)) return true;
    } else if (other) {
      const auto origin = origins_.find(path);
      const Location& at = other->key_location.known() ? other->key_location : other->value.location();
      const std::string what = origin == origins_.end() ? path : origin->second;
      diagnostics_.error(word.key_location,
                         word.written + ": " + shown(word.value) + " is " + path + ": " + shown(value) + ", but " +
                             what + " (" + line_beside(at, word.key_location) + ") is " + shown(other->value),
                         "keep one of the two");
      return false;
    }
    note(path, value);
    origins_.emplace(path, path + " by " + word.written);
    if (value.is_null() && !other) return true;
    value.add_history("alias " + word.written);
    registry::put_setting(recipe_, path, std::move(value), word.key_location, registry_);
    return true;
  }

  void note(const std::string& path, const Node& value) {
    const std::string text = path + ": " + shown(value);
    if (std::find(read_as_.begin(), read_as_.end(), text) == read_as_.end()) read_as_.push_back(text);
  }

  void tell(const char* framework) {
    if (options_.tells && !read_as_.empty() && !words_.empty()) {
      diagnostics_.notice(words_.front().top_location, words_.front().top + " is read as " + core::joined(read_as_));
    }
    if (idle_.empty()) return;
    std::vector<std::string> names;
    for (const ShardingWord& word : idle_) names.push_back(word.field.substr(word.field.rfind('.') + 1));
    diagnostics_.notice(idle_.front().key_location,
                        core::joined(names) + (names.size() == 1 ? " has" : " have") + " no effect",
                        std::string("`roux config options` says what roux does with each field of ") + framework);
  }

  std::int64_t machines() const {
    const Node* count = recipe_.at_path("launch.num_machines");
    if (count != nullptr && count->is_integer()) return count->as_integer();
    const Node* hosts = recipe_.at_path("launch.hosts");
    return hosts != nullptr && hosts->is_sequence() ? static_cast<std::int64_t>(hosts->items().size()) : 1;
  }

  /// How FSDP saves; without anything sharded there are no parts.
  void take_state_dict() {
    static constexpr std::pair<const char*, bool> kTypes[] = {
        {"full_state_dict", false}, {"local_state_dict", true}, {"sharded_state_dict", true}};
    const ShardingWord* word = read("state_dict_type");
    if (word == nullptr) return;
    std::string name = lower(word->value.scalar_text());
    constexpr std::string_view kEnum = "statedicttype.";
    if (name.starts_with(kEnum)) name.erase(0, kEnum.size());
    const auto number = number_of(word->value);
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
      const auto& [theirs, is_sharded] = kTypes[i];
      if (name != theirs && number != static_cast<double>(i + 1)) continue;
      if (is_sharded && !written_at("parallelism", "shard")) return;
      place(*word, "checkpoint.sharded", Node::boolean(is_sharded, word->value.location()));
      return;
    }
    must_be(*word, "FULL_STATE_DICT, SHARDED_STATE_DICT or LOCAL_STATE_DICT");
  }

  void place_shard(const ShardingWord& word, const char* shard) {
    const Location& at = word.value.location();
    place(word, "parallelism.shard", shard == nullptr ? Node::null(at) : Node::string(shard, at));
  }

  /// False where the value names no strategy.
  bool place_strategy(const ShardingWord& word) {
    static constexpr std::pair<const char*, const char*> kStrategies[] = {{"full_shard", "parameters"},
                                                                          {"shard_grad_op", "gradients"},
                                                                          {"no_shard", nullptr},
                                                                          {"hybrid_shard", "parameters"},
                                                                          {"hybrid_shard_zero2", "gradients"}};
    std::string name = lower(word.value.scalar_text());
    if (name.starts_with("_")) name.erase(0, 1);
    const auto number = number_of(word.value);
    for (std::size_t i = 0; i < std::size(kStrategies); ++i) {
      const auto& [theirs, shard] = kStrategies[i];
      if (name != theirs && number != static_cast<double>(i + 1)) continue;
      place_shard(word, shard);
      const bool has_sizes =
          written_at("parallelism", "dp_replicate_size") || written_at("parallelism", "dp_shard_size");
      if (std::string_view(theirs).starts_with("hybrid") && !has_sizes && machines() > 1)
        place(word, "parallelism.dp_replicate_size", Node::integer(machines(), word.value.location()));
      return true;
    }
    return false;
  }

  void take_strategy() {
    const ShardingWord *strategy = read("sharding_strategy"), *reshard = read("reshard_after_forward");
    if (strategy != nullptr && !place_strategy(*strategy)) must_be_strategy(*strategy, "1 to 5, or ");
    if (reshard != nullptr) {
      const auto flag = flag_of(reshard->value);
      if (!flag) {
        if (reshard->value.is_number() || !place_strategy(*reshard)) must_be_strategy(*reshard, "true, false, ");
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

  bool gathers_parameters() const {
    const auto shard = written_at("parallelism", "shard");
    return shard && shard->value.is_string() && shard->value.as_string() == "parameters";
  }

  /// FSDP's modules that are wrapped by themselves. With other strategies there is nothing to gather.
  void take_units() {
    const ShardingWord *policy = read("auto_wrap_policy"), *least = read("min_num_params");
    if (!gathers_parameters()) {
      for (const ShardingWord* word : {policy, least}) {
        if (word != nullptr && !asks_nothing(word->value)) idle_.push_back(*word);
      }
      return;
    }
    const double number = least != nullptr ? number_of(least->value).value_or(-1) : 0;
    if (number < 0 || number != std::floor(number)) return must_be(*least, "a whole number, at least 0");
    // `true`, as of the Trainer's auto_wrap, is of either kind.
    if (policy == nullptr || flag_of(policy->value) || asks_nothing(policy->value)) return place_joined(least, number);
    static const std::vector<std::string> kNames = {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"};
    const std::string name = core::upper(policy->value.scalar_text());
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      const std::string near = core::closest(name, kNames);
      return must_be(*policy, enumerated(kNames, "or"), near.empty() ? "" : "did you mean " + near + "?");
    }
    if (name == kNames[1] && number > 0) return place_joined(least, number);
    if (number > 0) idle_.push_back(*least);
    place(*policy, "parallelism.unit", Node::string(name == kNames[0] ? "block" : "model", policy->value.location()));
  }

  void place_joined(const ShardingWord* word, double number) {
    if (number > 0) place(*word, "parallelism.min_num_params", number_node(number, word->value.location()));
  }

  void take_stage(const std::string& name) {
    static constexpr const char* kShards[] = {nullptr, "optimizer", "gradients", "parameters"};
    const ShardingWord* word = read(name);
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    for (std::size_t stage = 0; stage < std::size(kShards); ++stage) {
      if (number == static_cast<double>(stage)) return place_shard(*word, kShards[stage]);
    }
    must_be(*word, "0, 1, 2, 3 or auto");
  }

  /// Processes that share a copy; 1 and -1 are ZeRO's defaults, all of them.
  void take_group(const std::string& name) {
    const ShardingWord* word = read(name);
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    if (!number || *number != std::floor(*number)) return must_be(*word, "a number of processes");
    if (*number > 1) place(*word, "parallelism.dp_shard_size", number_node(*number, word->value.location()));
  }

  /// The filter of this name; null where it asks for nothing.
  const ShardingWord* filter(const std::string& name) const {
    const ShardingWord* word = read(name);
    return word != nullptr && asks_nothing(word->value) ? nullptr : word;
  }

  void take_hosts() {
    const ShardingWord *file = filter("deepspeed_hostfile"), *include = filter("deepspeed_inclusion_filter"),
                       *exclude = filter("deepspeed_exclusion_filter");
    const ShardingWord* const choice = include != nullptr ? include : exclude;
    if (include != nullptr && exclude != nullptr)
      return diagnostics_.error(exclude->key_location,
                                exclude->written + " cannot be combined with " + include->written,
                                "keep one of the two");
    if (file == nullptr && choice != nullptr)
      return diagnostics_.error(
          choice->key_location,
          choice->written + " chooses among the machines of deepspeed_hostfile, which is not given",
          "write deepspeed_hostfile beside it");
    if (file == nullptr) return;
    auto hosts = hosts_of(*file);
    if (hosts && choice != nullptr)
      hosts = filtered(*std::move(hosts), choice->value.scalar_text(), choice == include, choice->written,
                       choice->value.location(), diagnostics_);
    if (hosts) place_hosts(*file, choice != nullptr ? *choice : *file, *hosts);
  }

  std::optional<std::vector<HostSlots>> hosts_of(const ShardingWord& file) {
    constexpr std::size_t kBytesMax = 1'000'000;
    const std::string name = path_beside(file.value);
    auto text = core::read_file(name, kBytesMax);
    if (!text) {
      diagnostics_.error(file.value.location(), file.written + ": " + text.failure().message,
                         "put the file there, or beside the file that names it, or write launch.hosts instead");
      return std::nullopt;
    }
    const core::Source source{name, std::move(text).value(), core::Source::Kind::kFile};
    return read_hostfile(std::make_shared<const core::Source>(source), diagnostics_);
  }

  /// `choice`: what says which slots these are.
  void place_hosts(const ShardingWord& file, const ShardingWord& choice, const std::vector<HostSlots>& hosts) {
    const Location& at = file.value.location();
    const auto gpus = common_slots(hosts);
    if (!gpus)
      return diagnostics_.error(choice.value.location(),
                                choice.written + " chooses other slots of one machine than of another, and " +
                                    "launch.gpu_ids is the same for all",
                                "choose the first slots of that of the machine with most");
    std::int64_t processes = 0;
    Node list = Node::sequence({}, at), ids = Node::sequence({}, choice.value.location());
    for (const HostSlots& host : hosts) {
      const auto slots = static_cast<std::int64_t>(host.slots.size());
      Node entry = Node::mapping(at);
      entry.set("host", Node::string(host.host, at), at);
      entry.set("slots", Node::integer(slots, at), at);
      list.items().push_back(std::move(entry));
      processes += slots;
    }
    for (const int gpu : *gpus) ids.items().push_back(Node::integer(gpu, choice.value.location()));
    const bool is_single = hosts.size() == 1;  // this one: nothing is started elsewhere
    if (!is_single && !place(file, "launch.hosts", std::move(list))) return;
    if (is_single || written_at("launch", "num_processes"))
      place(file, "launch.num_processes", Node::integer(processes, at));
    if (written_at("launch", "num_machines"))
      place(file, "launch.num_machines", Node::integer(static_cast<std::int64_t>(hosts.size()), at));
    if (gpus->back() + 1 != static_cast<int>(gpus->size())) place(choice, "launch.gpu_ids", std::move(ids));
  }

  void take_clipping() {
    const ShardingWord* word = read("gradient_clipping");
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    if (!number || *number < 0) return must_be(*word, "a number, at least 0, or auto");
    const Location& at = word->value.location();
    place(*word, "training.clip_grad_norm", *number == 0 ? Node::null(at) : as_written(word->value));
  }

  void take_optimizer() {
    static constexpr std::pair<const char*, const char*> kTypes[] = {{"adam", "adamw"}, {"adamw", "adamw"},
                                                                     {"lamb", "lamb"},  {"lion", "lion"},
                                                                     {"sgd", "sgd"},    {"adagrad", "adagrad"}};
    const ShardingWord *type = read("optimizer.type"), *decoupled = read("optimizer.params.adam_w_mode");
    if (type == nullptr) return;
    const std::string name = lower(type->value.scalar_text());
    const bool couples = decoupled != nullptr && flag_of(decoupled->value) == false;
    for (const auto& [theirs, ours] : kTypes) {
      if (name != theirs) continue;
      return void(place(*type, "optimizer.type",
                        Node::string(name == "adam" && couples ? "adam" : ours, type->value.location())));
    }
    missing(*type, "use Adam, AdamW, Lamb, Lion, SGD or Adagrad");
  }

  void take_schedule() {
    static constexpr std::pair<const char*, const char*> kDecays[] = {
        {"warmuplr", "constant"}, {"warmupdecaylr", "linear"}, {"warmupcosinelr", "cosine"}};
    const ShardingWord* type = read("scheduler.type");
    if (type == nullptr) return;
    const std::string name = lower(type->value.scalar_text());
    const auto* const found =
        std::find_if(std::begin(kDecays), std::end(kDecays), [&](const auto& pair) { return name == pair.first; });
    if (found == std::end(kDecays))
      return missing(*type, "use WarmupLR, WarmupDecayLR or WarmupCosineLR, or a schedule of `roux list lr_scheduler`");
    const Location& at = type->value.location();
    if (!place(*type, "lr_scheduler.type", Node::string("deepspeed", at))) return;
    place(*type, "lr_scheduler.decay", Node::string(found->second, at));
    const ShardingWord* floor = read("scheduler.params.warmup_min_lr");
    const auto least = floor != nullptr ? number_of(floor->value) : std::nullopt;
    if (!least || *least == 0) return;
    const auto rate = written_at("optimizer", "lr");
    const auto most = rate ? number_of(rate->value) : std::nullopt;
    if (!most || *most <= 0) {
      return diagnostics_.error(floor->value.location(),
                                floor->written + " is a part of optimizer.lr, which is not given",
                                "write warmup_max_lr beside it");
    }
    place(*floor, "lr_scheduler.warmup_min_ratio", number_node(*least / *most, floor->value.location()));
  }

  /// Null where the mode is not float16 or loss scaling has no such number.
  void take_scaler(const char* name, const char* key, double (*meaning)(double)) {
    const ShardingWord* word = read(std::string("fp16.") + name);
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    if (!number || *number < 0) return must_be(*word, "a number, at least 0");
    const double value = meaning(*number);
    if (value > 0) place(*word, std::string("precision.scaler.") + key, number_node(value, word->value.location()));
  }

  void take_precision() {
    for (const auto& [name, mode] :
         {std::pair{"fp16", "16-mixed"}, {"bf16", "bf16-mixed"}, {"bfloat16", "bf16-mixed"}}) {
      const ShardingWord* word = read(std::string(name) + ".enabled");
      if (word == nullptr) continue;
      const auto flag = flag_of(word->value);
      if (!flag) must_be(*word, "true, false or auto");
      if (flag && *flag) place(*word, "precision.mode", Node::string(mode, word->value.location()));
    }
    const auto mode = written_at("precision", "mode");
    if (!mode || mode->value.scalar_text() != "16-mixed") return;
    const auto same = [](double x) { return x; };
    const ShardingWord* fixed = read("fp16.loss_scale");
    take_scaler("loss_scale", "loss_scale", same);
    if (fixed != nullptr && number_of(fixed->value).value_or(0) > 0) return;  // the others are of a scale that adapts
    take_scaler("initial_scale_power", "init_scale", [](double x) { return std::exp2(std::min(x, 127.0)); });
    take_scaler("loss_scale_window", "growth_interval", same);
    take_scaler("hysteresis", "hysteresis", same);
    take_scaler("min_loss_scale", "min_loss_scale", same);
  }

  const std::vector<ShardingWord>& words_;
  Node& recipe_;
  const ShardingOptions& options_;
  const registry::Registry& registry_;
  core::Diagnostics& diagnostics_;
  std::vector<std::unique_ptr<ShardingWord>> kept_;
  std::map<std::string, const ShardingWord*, std::less<>> found_;
  std::vector<ShardingWord> idle_;
  std::vector<std::string> read_as_;
  std::map<std::string, std::string> origins_;  // path -> which word has set it
};

}  // namespace

void apply_fsdp(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
                const registry::Registry& registry, core::Diagnostics& diagnostics) {
  Words(words, recipe, options, registry, diagnostics).fsdp();
}

void apply_deepspeed(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
                     const registry::Registry& registry, core::Diagnostics& diagnostics) {
  Words(words, recipe, options, registry, diagnostics).deepspeed();
}

}  // namespace runner::resolve
