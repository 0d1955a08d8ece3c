#include "runner/train/save/resume_contract.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/reference/lookup.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"

// g++ 12 sees an overflow in sums of strings where there is none (its bug 105651).
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wrestrict"

namespace runner::train {
namespace {

using core::Node;
using Resume = registry::Property::Resume;

constexpr const char* kThreadsKey = "launch.num_cpu_threads_per_process";
constexpr const char* kDeviceKey = "device";
constexpr const char* kBackendKey = "launch.backend";
constexpr const char* kProcessesKey = "launch.num_processes";
constexpr const char* kBucketKey = "ddp.bucket_cap_mb";
constexpr const char* kAccumulationKey = "training.gradient_accumulation_steps";
constexpr const char* kCapabilityKey = "cpu_capability";
constexpr const char* kLibtorchKey = "libtorch";
constexpr const char* kTotalKey = "lr_scheduler.total_steps";

// The first of these that changes affects every schedule with a length derived from the training.
constexpr auto kLengths =
    std::to_array<std::string_view>({"training.max_steps", "training.max_epochs", "training.max_tokens"});

bool is_under(std::string_view path, std::string_view section) {
  return path.starts_with(section) &&
         (path.size() == section.size() || path[section.size()] == '.' || path[section.size()] == '[');
}

std::string backend_text(const Node& recipe) {
  const Node* backend = recipe.at_path(kBackendKey);
  return backend != nullptr && backend->is_string() ? backend->as_string() : "auto";
}

bool is_set(const Node& recipe, const char* path) {
  const Node* node = recipe.at_path(path);
  return node != nullptr && !node->is_null();
}

/// Whether a rate depends on the schedule's length: false for a constant rate.
bool schedule_has_a_length(const Node& recipe) {
  const Node* type = recipe.at_path("lr_scheduler.type");
  if (type == nullptr || !type->is_string()) return false;
  const registry::Fragment* fragment = registry::Registry::builtin().find("lr_scheduler", type->as_string());
  const registry::Property* property = fragment != nullptr ? fragment->find("total_steps") : nullptr;
  return property != nullptr && (!property->default_from.empty() || is_set(recipe, "lr_scheduler.warmup_ratio"));
}

/// Whether that length is derived from the training.
bool schedule_follows_training(const Node& recipe) {
  return !is_set(recipe, kTotalKey) && schedule_has_a_length(recipe);
}

Difference difference_of(const resolve::Change& change) {
  Difference difference;
  difference.key = change.path;
  difference.before = change.before_text();
  difference.after = change.after_text();
  difference.before_location = change.before_location;
  difference.location = change.after_location;
  return difference;
}

class Judge {
 public:
  Judge(const Recorded& recorded, const Present& present) : recorded_(recorded), present_(present) {}

  void look_at(const resolve::Change& change) {
    Difference difference = difference_of(change);
    difference.location = written_location(difference);
    if (differs(difference)) differences.push_back(std::move(difference));
  }

  void look_around() {
    if (!recorded_.environment) return;
    const ArithmeticEnvironment &before = *recorded_.environment, &now = present_.environment;
    // Another number of processes implies another share of the cores; that change has to be allowed itself.
    const bool shared_anew =
        recorded_.processes.value_or(recorded_processes(recorded_.recipe)) != recorded_processes(present_.recipe) &&
        !is_set(present_.recipe, kThreadsKey);
    if (!shared_anew) {
      environment(kThreadsKey, std::to_string(before.threads), std::to_string(now.threads),
                  "the number of threads changes the summation order",
                  "OMP_NUM_THREADS=" + std::to_string(before.threads) + " or --set " + kThreadsKey + "=" +
                      std::to_string(before.threads) + " restores the old number");
    }
    environment(kCapabilityKey, before.cpu_capability, now.cpu_capability,
                "other CPU instructions change the summation order",
                instructions_back(before.cpu_capability, now.cpu_capability));
    environment(kLibtorchKey, before.libtorch, now.libtorch, "its kernels may round differently", "");
  }

  std::vector<Difference> differences;

  /// What the effect of a key is where that depends on both recipes; its fragment has `"x-resume": "rule"`.
  struct Rule {
    std::string_view key;
    bool (Judge::*apply)(Difference&);
  };
  static const std::vector<Rule> kRules;

 private:
  /// A derived value has no location of its own; a length of the schedule has that of the length it follows.
  core::Location written_location(const Difference& difference) const {
    const auto written = [](const core::Location& location) {
      return location.known() && location.source->kind != core::Source::Kind::kDefault;
    };
    if (written(difference.location)) return difference.location;
    if (difference.key != kTotalKey) return {};
    for (const std::string_view length : kLengths) {
      const Node* node = present_.recipe.at_path(length);
      if (node != nullptr && !node->is_null() && written(node->location())) return node->location();
    }
    return {};
  }

  /// How to restore a checkpoint's instructions. Only LibTorch's, the first part of the record, can be selected; the
  /// rest depends on the CPU.
  static std::string instructions_back(const std::string& before, const std::string& now) {
    const auto of_processor = [](const std::string& record) {
      return record.substr(std::min(record.find(','), record.size()));
    };
    if (of_processor(before) != of_processor(now)) return "resume on a CPU of the original kind";
    return "ATEN_CPU_CAPABILITY=" + core::lower(before.substr(0, before.find(','))) +
           " selects the old ones if this CPU has them";
  }

  void environment(const char* key, const std::string& before, const std::string& now, const char* why,
                   const std::string& hint) {
    if (before == now || before.empty() || now.empty()) return;
    Difference difference;
    difference.key = key;
    difference.before = before;
    difference.after = now;
    if (is_set(present_.recipe, key)) difference.location = present_.recipe.at_path(key)->location();
    if (is_set(recorded_.recipe, key)) difference.before_location = recorded_.recipe.at_path(key)->location();
    difference.effect = Effect::kChangesResults;
    difference.why = why;
    difference.hint = hint;
    differences.push_back(std::move(difference));
  }

  /// Sets the effect of a difference. False: both values are the same after all.
  bool differs(Difference& difference) {
    const auto [resume, key] = contract_of(difference.key);
    difference.effect = resume == Resume::kHarmless ? Effect::kHarmless : Effect::kChangesResults;
    if (resume != Resume::kRule) return true;
    for (const Rule& rule : kRules) {
      if (rule.key == key) return (this->*rule.apply)(difference);
    }
    return true;
  }

  /// What the fragments say of the key at `path`, or of the nearest key above it that says something, with its path.
  std::pair<Resume, std::string_view> contract_of(std::string_view path) const {
    for (std::string_view key = path; !key.empty(); key = key.substr(0, std::min(key.find_last_of(".["), key.size()))) {
      for (const Node* recipe : {&present_.recipe, &recorded_.recipe}) {
        const registry::PathSchema schema = registry::find_schema(registry::Registry::builtin(), *recipe, key);
        if (schema.property != nullptr && schema.property->resume != Resume::kAsAbove)
          return {schema.property->resume, key};
      }
      if (key.find_first_of(".[") == std::string_view::npos) break;
    }
    return {Resume::kAsAbove, path};
  }

  // Each rule is given a difference that changes the results, and returns whether it is one.

  bool optimizer(Difference& difference) {
    if (difference.key != "optimizer.type") return true;
    difference.effect = Effect::kImpossible;
    difference.why = "its saved state belongs to the other one";
    return true;
  }

  /// The optimizer has state for what it trains, and only for that.
  bool trained(Difference& difference) {
    difference.effect = Effect::kImpossible;
    difference.why = "the optimizer's state is that of what was trained";
    difference.hint = "restore the old value to resume that run, or begin a new one with its weights: init_from: RUN";
    return true;
  }

  /// Which adapters there are, and of which sizes, is in the saved state.
  bool adapters(Difference& difference) {
    const auto is = [&difference](std::string_view key) { return difference.key.ends_with(key); };
    if (is(".init_lora_weights") || is(".path")) {
      difference.effect = Effect::kHarmless;
      difference.why = "a resume draws no weights";
    } else if (!is(".lora_alpha") && !is(".use_rslora") && !is(".lora_dropout")) {
      return trained(difference);
    }
    return true;
  }

  /// The same weights may be elsewhere now; others are refused before anything is trained, or are not asked again.
  bool teacher(Difference& difference) {
    if (!is_set(recorded_.recipe, "teacher.init_from") || !is_set(present_.recipe, "teacher.init_from")) return true;
    difference.effect = Effect::kHarmless;
    difference.why = "a resume accepts no other weights of the teacher";
    return true;
  }

  bool device(Difference& difference) {
    difference.why = "another device changes the summation order and draws other random numbers";
    return !same_kind_of_device();
  }

  bool number_of_processes(Difference& difference) {
    difference.why =
        "the number of processes and threads changes the summation order, and each process draws its own dropout";
    return true;
  }

  /// Only the number that results counts: look_around() compares it with the environment.
  bool number_of_threads(Difference&) { return false; }

  bool backend(Difference& difference) {
    // Another device is a change of its own.
    where(sums_have_an_order() && same_kind_of_device(), "another backend changes the summation order", difference);
    return !same_backend();
  }

  bool bucket(Difference& difference) {
    where(sums_have_an_order(), "the position in a bucket changes the summation order", difference);
    return true;
  }

  /// How processes exchange gradients has no effect with one process.
  /// Sharding is harmless, and so is what follows from it.
  bool exchanged_batches(Difference& difference) {
    constexpr const char* kShard = "parallelism.shard";
    if (!is_set(recorded_.recipe, kShard) && !is_set(present_.recipe, kShard)) return exchange(difference);
    difference.effect = Effect::kHarmless;
    return true;
  }

  bool exchange(Difference& difference) {
    where(recorded_processes(recorded_.recipe) > 1 || recorded_processes(present_.recipe) > 1, "", difference);
    return true;
  }

  bool accumulation(Difference& difference) {
    if (!same_step()) return true;
    difference.effect = Effect::kHarmless;
    difference.why = "a step has the same micro-batches, spread over another number of processes";
    return true;
  }

  bool schedule(Difference& difference) {
    if (difference.key != kTotalKey) return true;
    if (is_the_settled_total(difference)) {
      difference.effect = Effect::kHarmless;
      difference.why = "it equals the length of the training";
    } else if (!schedule_has_a_length(recorded_.recipe) && !schedule_has_a_length(present_.recipe)) {
      difference.effect = Effect::kHarmless;
      difference.why = "no rate depends on it";
    } else {
      difference.why = "every rate changes; unless set, it follows the length of the training";
      if (is_set(recorded_.recipe, kTotalKey)) keep_the_schedule(difference, difference.before);
    }
    return true;
  }

  bool length(Difference& difference) {
    where(lengths_move_the_schedule(), "lr_scheduler takes its total_steps from it, so every rate changes", difference);
    if (difference.effect != Effect::kHarmless && recorded_.provenance && recorded_.provenance->total_steps > 0)
      keep_the_schedule(difference, std::to_string(recorded_.provenance->total_steps));
    return true;
  }

  /// What the model is made of and computes in.
  bool model(Difference& difference) {
    difference.why = first_mismatch();
    if (!difference.why.empty()) difference.effect = Effect::kImpossible;
    return true;
  }

  /// Sets other than `train` are evaluated.
  bool data(Difference& difference) {
    if (is_under(difference.key, "data.train")) return model(difference);
    difference.effect = Effect::kHarmless;
    return true;
  }

  bool average(Difference& difference) {
    if (difference.key != "weight_averaging") return true;
    difference.why = is_set(present_.recipe, "weight_averaging")
                         ? "an average is evaluated and saved from its first update on"
                         : "the average is dropped: the trained weights are evaluated and saved again";
    return true;
  }

  /// Harmless unless it matters, which `why` explains.
  static void where(bool matters, const char* why, Difference& difference) {
    difference.effect = matters ? Effect::kChangesResults : Effect::kHarmless;
    if (matters) difference.why = why;
  }

  /// The old length is the second choice: a training that goes beyond it may have a rate of 0 there.
  static void keep_the_schedule(Difference& difference, const std::string& total) {
    difference.hint = "--set ";  // appended piece by piece: g++ 12 wrongly warns of a sum
    difference.hint.append(kTotalKey).append("=").append(total);
    difference.hint.append(" keeps the old schedule, which ends at step ").append(total);
    difference.hint_comes_last = true;
  }

  /// `auto` stays on the device of the run; another index is another device of the same kind.
  bool same_kind_of_device() const {
    const auto kind = [](const std::string& device) { return device.substr(0, device.find(':')); };
    const Node* now = present_.recipe.at_path(kDeviceKey);
    const std::string present = now != nullptr && now->is_string() ? now->as_string() : "auto";
    return present == "auto" || kind(present) == kind(recorded_device(recorded_.recipe));
  }

  /// `auto` stays on the backend of the run; one process had none.
  bool same_backend() const {
    const std::string present = backend_text(present_.recipe), recorded = recorded_backend(recorded_.recipe);
    return present == "auto" || recorded.empty() || present == recorded;
  }

  /// Only with three or more processes.
  bool sums_have_an_order() const {
    constexpr std::int64_t kFewest = 3;
    return recorded_processes(recorded_.recipe) >= kFewest && recorded_processes(present_.recipe) >= kFewest;
  }

  /// Whether the change follows from the number of processes alone.
  bool same_step() const {
    const auto same = [this](const char* path) {
      const Node *before = recorded_.recipe.at_path(path), *now = present_.recipe.at_path(path);
      return before != nullptr && now != nullptr && before->same_value(*now);
    };
    return recorded_processes(recorded_.recipe) != recorded_processes(present_.recipe) &&
           same("training.micro_batch_size") && same("training.global_batch_size");
  }

  bool lengths_move_the_schedule() const {
    return schedule_follows_training(recorded_.recipe) && schedule_follows_training(present_.recipe);
  }

  /// Writing a settled value into the recipe, or removing it, changes nothing.
  bool is_the_settled_total(const Difference& difference) const {
    if (!recorded_.provenance || recorded_.provenance->total_steps == 0) return false;
    const std::string settled = std::to_string(recorded_.provenance->total_steps);
    return difference.after == settled && (difference.before == "null" || difference.before == "absent");
  }

  const std::string& first_mismatch() {
    if (!mismatch_) mismatch_ = present_.mismatch ? present_.mismatch() : "";
    return *mismatch_;
  }

  const Recorded& recorded_;
  const Present& present_;
  std::optional<std::string> mismatch_;
};

const std::vector<Judge::Rule> Judge::kRules = {
    {kDeviceKey, &Judge::device},
    {"model", &Judge::model},
    {"data", &Judge::data},
    {"optimizer", &Judge::optimizer},
    {"adapters", &Judge::adapters},
    {"teacher.init_from", &Judge::teacher},
    {"training.freeze", &Judge::trained},
    {"training.train_only", &Judge::trained},
    {"lr_scheduler", &Judge::schedule},
    {"weight_averaging", &Judge::average},
    {"precision.mode", &Judge::model},
    {"precision.overrides", &Judge::model},
    {"accumulation.sync_each_batch", &Judge::exchanged_batches},
    {kLengths[0], &Judge::length},
    {kLengths[1], &Judge::length},
    {kLengths[2], &Judge::length},
    {kAccumulationKey, &Judge::accumulation},
    {"ddp", &Judge::exchange},
    {kBucketKey, &Judge::bucket},
    {"local_sgd", &Judge::exchange},
    {kProcessesKey, &Judge::number_of_processes},
    {kBackendKey, &Judge::backend},
    {kThreadsKey, &Judge::number_of_threads},
};

/// Allowing another length also allows the schedule that follows it.
bool is_allowed(const Difference& difference, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& key) {
    return is_under(difference.key, key) ||
           (difference.key == kTotalKey && std::find(kLengths.begin(), kLengths.end(), key) != kLengths.end());
  });
}

/// The keys that have to be allowed for a resume, each once; only `difference` where allowing all would not be enough.
std::vector<std::string> keys_to_allow(const Difference& difference, const std::vector<Difference>& differences,
                                       const std::vector<std::string>& allowed) {
  std::vector<std::string> keys;
  for (const Difference& other : differences) {
    if (other.effect == Effect::kHarmless || is_allowed(other, allowed)) continue;
    if (other.effect == Effect::kImpossible || other.hint_is_all) return {difference.key};
    if (std::find(keys.begin(), keys.end(), other.key) == keys.end()) keys.push_back(other.key);
  }
  return keys;
}

/// What resumes in spite of a difference and of the others, or avoids it.
std::string remedies(const Difference& difference, const std::vector<std::string>& keys) {
  if (difference.hint_is_all) return difference.hint;
  std::string text;
  for (const std::string& key : keys) text.append("--allow-change ").append(key).append(" ");
  text.append(keys.size() == 1 ? "resumes with it" : "resumes with all changes");
  text.append(", `roux run RECIPE --new` starts a new run");
  if (difference.hint.empty()) return text;
  return difference.hint_comes_last ? text + ", " + difference.hint : difference.hint + "; " + text;
}

void all_paths(const std::string& path, const Node& node, std::vector<std::string>& paths) {
  if (!path.empty()) paths.push_back(path);
  for (const auto& entry : node.entries()) {
    all_paths(path.empty() ? entry.key : path + "." + entry.key, entry.value, paths);
  }
}

}  // namespace

bool allowed_keys_are_known(const std::vector<std::string>& allowed, const std::vector<Difference>& differences,
                            const Node& recipe, core::Diagnostics& diagnostics) {
  bool known = true;
  for (const std::string& key : allowed) {
    if (key == kCapabilityKey || key == kLibtorchKey || recipe.at_path(key) != nullptr) continue;
    if (std::any_of(differences.begin(), differences.end(), [&](const Difference& d) { return is_under(d.key, key); }))
      continue;
    std::vector<std::string> names = {kCapabilityKey, kLibtorchKey};
    for (const Difference& difference : differences) names.push_back(difference.key);
    all_paths("", recipe, names);
    const std::string near = core::closest(key, names);
    diagnostics.error(
        {}, "--allow-change " + key + ": the recipe has no such key",
        near.empty() ? "use a key as named in the error, such as optimizer.lr" : "did you mean " + near + "?");
    known = false;
  }
  return known;
}

std::int64_t recorded_processes(const Node& recipe) {
  const Node* number = recipe.at_path(kProcessesKey);
  return number != nullptr && number->is_integer() ? number->as_integer() : 1;
}

std::string recorded_device(const Node& recipe) {
  const Node* device = recipe.at_path(kDeviceKey);
  const std::string text = device != nullptr && device->is_string() ? device->as_string() : "auto";
  return text == "auto" ? "cpu" : text;
}

std::string recorded_backend(const Node& recipe) {
  const std::string text = backend_text(recipe);
  if (text != "auto") return text;
  return recorded_processes(recipe) > 1 ? "gloo" : "";
}

std::string_view to_text(Effect effect) {
  switch (effect) {
    case Effect::kHarmless: return "harmless";
    case Effect::kChangesResults: return "changes the results";
    case Effect::kImpossible: return "impossible";
  }
  return "";
}

std::vector<std::string> resume_rules() {
  std::vector<std::string> keys;
  for (const Judge::Rule& rule : Judge::kRules) keys.emplace_back(rule.key);
  return keys;
}

std::vector<Difference> list_differences(const Recorded& recorded, const Present& present) {
  Judge judge(recorded, present);
  for (const resolve::Change& change : resolve::list_changes(recorded.recipe, present.recipe)) judge.look_at(change);
  judge.look_around();
  return std::move(judge.differences);
}

std::string to_text(const Difference& difference) {
  const std::string location = difference.before_location.text();
  return difference.key + " was " + difference.before + (location.empty() ? "" : " (" + location + ")") + " and is " +
         difference.after + " now";
}

bool may_resume(const std::vector<Difference>& differences, const std::vector<std::string>& allowed, const Node& recipe,
                core::Diagnostics& diagnostics) {
  bool holds = allowed_keys_are_known(allowed, differences, recipe, diagnostics);
  for (const Difference& difference : differences) {
    if (difference.effect == Effect::kHarmless) continue;
    if (difference.effect == Effect::kChangesResults && is_allowed(difference, allowed)) continue;
    holds = false;
  }
  if (holds) return true;
  for (const Difference& difference : differences) {
    const std::string why = difference.why.empty() ? "" : " (" + difference.why + ")";
    const std::string text = to_text(difference);
    switch (difference.effect) {
      case Effect::kHarmless: diagnostics.notice(difference.location, text + ": harmless" + why); break;
      case Effect::kChangesResults:
        if (is_allowed(difference, allowed)) {
          diagnostics.notice(difference.location, text + ": allowed, though it changes the results" + why);
        } else {
          diagnostics.error(difference.location, text + ": changes the results" + why,
                            remedies(difference, keys_to_allow(difference, differences, allowed)));
        }
        break;
      case Effect::kImpossible:
        diagnostics.error(difference.location, text + ": not possible, the saved state does not fit" + why,
                          !difference.hint.empty() ? difference.hint
                                                   : "restore the old value to resume that run, or start a new one "
                                                     "with `roux run RECIPE --new`");
        break;
    }
  }
  return false;
}

}  // namespace runner::train
