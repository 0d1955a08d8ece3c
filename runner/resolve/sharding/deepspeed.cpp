#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/resolve/sharding/hostfile.h"
#include "runner/resolve/sharding/setting_words.h"
#include "runner/resolve/sharding/settings.h"

namespace runner::resolve {
namespace {

using core::Location;
using core::lower;
using core::Node;

class DeepSpeed : public SettingWords {
 public:
  using SettingWords::SettingWords;

  void take_all() {
    sort();
    for (const char* name : {"zero_optimization.zero_hpz_partition_size", "zero_optimization.mics_shard_size"})
      take_group(name);
    take_prefetch();
    take_hosts();
    take_clipping();
    take_optimizer();
    take_schedule();
    take_precision();
    tell();
  }

 private:
  /// Processes that share a copy; 1 and -1 are ZeRO's defaults, all of them.
  void take_group(const std::string& name) {
    const ShardingWord* word = read(name);
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    if (!number || *number != std::floor(*number)) return must_be(*word, "a number of processes");
    if (*number > 1) place(*word, "parallelism.dp_shard_size", number_node(*number, word->value.location()));
  }

  /// How many parameters are gathered ahead; here it is units.
  void take_prefetch() {
    const ShardingWord* word = read("zero_optimization.stage3_prefetch_bucket_size");
    if (word == nullptr) word = read("zero_optimization.prefetch_bucket_size");
    if (word == nullptr) return;
    const auto number = number_of(word->value);
    if (!number || *number < 0) return must_be(*word, "a number, at least 0, or auto");
    if (*number > 0 || !gathers_parameters() || gathers_model()) return leave(*word);
    const Location& at = word->value.location();
    place(*word, "parallelism.forward_prefetch", Node::boolean(false, at));
    if (!is_off("reshard_after_forward"))  // what is kept needs no gather
      place(*word, "parallelism.backward_prefetch", Node::string("none", at));
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
    const ShardingWord *type = read("optimizer.type"), *decoupled = read("optimizer.params.adam_w_mode");
    if (type == nullptr) return;
    const words::Outcome* ours = listed("optimizer.type", type->value);
    if (ours == nullptr) return missing(*type, "", "use Adam, AdamW, Lamb, Lion, SGD or Adagrad", /*is_fatal=*/true);
    const bool couples = decoupled != nullptr && flag_of(decoupled->value) == false;
    const bool is_plain = couples && lower(type->value.scalar_text()) == "adam";
    place(*type, "optimizer.type", Node::string(is_plain ? "adam" : ours->value->as_string(), type->value.location()));
  }

  void take_schedule() {
    const ShardingWord* type = read("scheduler.type");
    if (type == nullptr) return;
    const words::Outcome* ours = listed("scheduler.type", type->value);
    if (ours == nullptr)
      return missing(*type, "",
                     "use WarmupLR, WarmupDecayLR or WarmupCosineLR, or a schedule of `roux list lr_scheduler`",
                     /*is_fatal=*/true);
    const Location& at = type->value.location();
    if (!place(*type, "lr_scheduler.type", Node::string(ours->value->as_string(), at))) return;
    for (const Node::Entry& also : ours->also.entries())
      place(*type, also.key, Node::string(also.value.as_string(), at));
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
};

}  // namespace

void apply_deepspeed(const std::vector<ShardingWord>& words, Node& recipe, const ShardingOptions& options,
                     const registry::Registry& registry, core::Diagnostics& diagnostics) {
  DeepSpeed(words::table_of("deepspeed"), words, recipe, options, registry, diagnostics).take_all();
}

}  // namespace runner::resolve
