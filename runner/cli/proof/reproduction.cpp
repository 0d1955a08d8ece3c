#include "runner/cli/proof/reproduction.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "generated/section/launch.h"
#include "runner/artifact/provenance/provenance.h"
#include "runner/artifact/provenance/secrets.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/local_device.h"
#include "runner/cli/recorded_recipe.h"
#include "runner/cli/session.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/language/pattern.h"
#include "runner/core/path.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/former_values.h"
#include "runner/resolve/load.h"
#include "runner/resolve/recipe.h"
#include "runner/review/checkpoint/bitwise_compare.h"
#include "runner/store/run_reader.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;

using artifact::Cause;
using artifact::Provenance;
using core::Node;

constexpr std::size_t kCausesShownMax = 20;

/// The differences of two recipes, without names and paths.
std::vector<resolve::Change> changes_that_count(const Node& before, const Node& after) {
  std::vector<resolve::Change> counting;
  for (resolve::Change& change : resolve::list_changes(before, after)) {
    const bool is_name = change.path == "run_name" || change.path == "output_dir" || change.path == "description" ||
                         change.path == "extends" || change.path.starts_with("vars");
    if (!is_name) counting.push_back(std::move(change));
  }
  return counting;
}

Cause cause_of(const resolve::Change& change) {
  const auto with_location = [](const std::string& value, const core::Location& location) {
    const std::string text = location.text();
    return text.empty() ? value : value + " (" + text + ")";
  };
  return {change.path, with_location(change.before_text(), change.before_location),
          with_location(change.after_text(), change.after_location)};
}

void print_causes(const std::vector<Cause>& causes) {
  for (std::size_t i = 0; i < causes.size() && i < kCausesShownMax; ++i) {
    std::printf("  %s was %s and is %s\n", core::escape_for_terminal(causes[i].what).c_str(),
                core::escape_for_terminal(causes[i].before).c_str(),
                core::escape_for_terminal(causes[i].after).c_str());
  }
  if (causes.size() > kCausesShownMax) std::printf("  and %zu more\n", causes.size() - kCausesShownMax);
}

/// The name of the reproduction: `tiny-again`, and `tiny-again-2` for that of `tiny-again`.
std::string again_name(const std::string& name) {
  constexpr std::size_t kNameMax = 100;  // of run_name
  static const core::Pattern made_again = core::Pattern::make("^(.*)-again(-([0-9]{1,9}))?$").value();
  const auto parts = made_again.find(name, 0);
  if (parts.empty()) return name.substr(0, kNameMax - 6) + "-again";
  const std::string suffix = "-again-" + std::to_string(parts[3].empty() ? 2 : std::stol(std::string(parts[3])) + 1);
  return std::string(parts[1].substr(0, kNameMax - suffix.size())) + suffix;
}

/// `PATH=JSON` of each value in a part of a recipe.
std::vector<std::string> as_overrides(const Node& part, const std::string& above = "") {
  std::vector<std::string> words;
  for (const Node::Entry& entry : part.entries()) {
    const std::string path = core::join_path(above, entry.key);
    if (entry.value.is_mapping()) {
      for (std::string& word : as_overrides(entry.value, path)) words.push_back(std::move(word));
    } else {
      words.push_back(path + "=" + core::to_json(entry.value, -1));
    }
  }
  return words;
}

class Reproduction {
 public:
  Reproduction(Session& session, ReproduceFlags& flags) : session_(session), flags_(flags) {}

  void run() {
    if (!find_original() || !load_recipe()) return;
    const bool alone = recipe_->launch->num_processes == 1;
    if (!alone && !starts_ranks(*recipe_)) {
      return session_.fail("reproduce starts the processes of a run itself, and this one was started with others",
                           "run the command once, without torchrun, mpirun or srun");
    }
    if (!alone) take_environment_of_ranks(*recipe_);
    if (alone && recipe_->device != "auto" && !local_device(session_, *recipe_)) return;
    engine::Engine* engine = engine_or_fail(session_);
    if (engine == nullptr) return;
    say_what_differs(*engine);
    const auto train_it = [&] { return alone ? train(*engine) : train_with_ranks(); };
    if (!train_it()) return;
    for (const store::LineageSegment& longer : lengthenings()) {
      if (!lengthen(longer.branch)) return;
      if (!train_it()) return;
    }
    compare();
  }

 private:
  bool find_original() {
    const auto found = store::find_run(session_.runs_dir(), flags_.run, core::system_clock());
    if (!found) {
      session_.fail(found.failure().message, found.failure().hint);
      return false;
    }
    original_ = found.value();
    if (original_.owner) {
      session_.fail("run " + original_.run_dir + " is still training", "wait until it ends, or stop it");
      return false;
    }
    auto provenance = artifact::read_provenance(original_.run_dir + "/" + artifact::kProvenanceFile);
    auto recipe = resolve::read_recorded_recipe(original_.run_dir, original_.run_dir + "/resolved.json");
    if (!provenance || !recipe) {
      const core::Failure& failure = provenance ? recipe.failure() : provenance.failure();
      session_.fail("run " + original_.run_dir + " cannot be reproduced: " + failure.message,
                    failure.hint.empty() ? "it lacks files that every run records when it starts" : failure.hint);
      return false;
    }
    provenance_ = std::move(provenance).value();
    recorded_ = std::move(recipe).value();
    return true;
  }

  bool load_recipe() {
    const bool as_recorded = flags_.recipe.path.empty();
    is_as_recorded_ = as_recorded;
    if (as_recorded) flags_.recipe.path = original_.run_dir + "/resolved.json";
    const std::string output_dir =
        session_.output_dir.empty() ? fs::path(original_.run_dir).parent_path().string() : session_.output_dir;
    core::Diagnostics diagnostics;
    recipe::ComposeOptions options = compose_options(flags_.recipe, diagnostics);
    session_.show(diagnostics);
    if (diagnostics.has_errors()) {
      session_.exit_code = core::kExitUsage;
      return false;
    }
    changes_ = options;
    // Under its own name, so that a stopped run with the original name is still found as the newest.
    output_dir_ = output_dir.empty() ? "." : output_dir;
    set(options, "output_dir", output_dir_);
    set(options, "run_name", again_name(original_.name));
    recipe_ = session_.load(flags_.recipe.path, options);
    if (recipe_) stay_on_device(*recipe_);
    if (recipe_) {
      former_values_ = resolve::former_values(recipe_->root, recorded_);
      recipe_->take_values(former_values_);
    }
    if (recipe_ && as_recorded) look_at_recipe_file();
    return recipe_.has_value();
  }

  static void set(recipe::ComposeOptions& options, const std::string& path, const std::string& value) {
    options.overrides.push_back({recipe::Override::Kind::kSet, path + "=" + core::to_json(Node::string(value), -1)});
  }

  /// `auto` is the device of the original, not this machine's best. Runs recorded with `auto` itself trained on the
  /// CPU.
  void stay_on_device(resolve::Recipe& recipe) const {
    const Node* device = recorded_.find("device");
    if (recipe.device == "auto" && device != nullptr && device->is_string()) recipe.settle_device(device->as_string());
  }

  /// The recorded command line lacks its secrets: a key that was set to one has the value in the recorded recipe, where
  /// it is a reference. Nothing where that cannot be known.
  std::optional<recipe::ComposeOptions> overrides_of_original() const {
    const auto is_hidden = [](const std::string& text) {
      return text.find(artifact::kHiddenValue) != std::string::npos;
    };
    recipe::ComposeOptions options = recorded_changes(provenance_.command_line);
    for (const auto& [name, value] : options.ext) {
      if (is_hidden(value)) return std::nullopt;
    }
    for (recipe::Override& one : options.overrides) {
      if (!is_hidden(one.text)) continue;
      const std::string path = one.text.substr(0, one.text.find('='));
      const Node* recorded = one.kind == recipe::Override::Kind::kSet ? recorded_.at_path(path) : nullptr;
      if (recorded == nullptr) return std::nullopt;
      one.text = path + "=" + core::to_json(*recorded, -1);
    }
    return options;
  }

  /// Prints whether the recipe file has changed since; the recorded recipe is used in any case.
  void look_at_recipe_file() {
    if (provenance_.recipe.empty() || provenance_.recipe.ends_with("resolved.json")) return;
    fs::path path = provenance_.recipe;
    if (path.is_relative()) path = fs::path(provenance_.folder) / path;
    std::error_code ignored;
    if (fs::equivalent(provenance_.folder, fs::current_path(ignored), ignored)) path = provenance_.recipe;
    if (!fs::exists(path, ignored)) {
      std::printf("the recipe %s no longer exists; using the recorded one\n",
                  core::escape_for_terminal(path.native()).c_str());
      return;
    }
    const auto overrides = overrides_of_original();
    if (!overrides) {
      std::printf(
          "whether the recipe %s has changed is unknown, as a secret of the command line was not recorded; using "
          "the recorded one\n",
          core::escape_for_terminal(path.native()).c_str());
      return;
    }
    core::Diagnostics diagnostics;
    auto now = resolve::load_recipe(path.string(), *overrides, registry::Registry::builtin(), diagnostics);
    if (!now) {
      std::printf("the recipe %s has changed and is invalid; using the recorded one\n",
                  core::escape_for_terminal(path.native()).c_str());
      return;
    }
    stay_on_device(*now);
    auto changes = changes_that_count(recorded_, now->resolved());
    // What `auto` came to is recorded.
    std::erase_if(changes, [](const resolve::Change& change) {
      return change.path == "launch.backend" && change.after_text() == "auto";
    });
    if (changes.empty()) return;
    std::printf("the recipe has changed; using the recorded one (--recipe %s uses the present one):\n",
                core::escape_for_terminal(path.native()).c_str());
    std::vector<Cause> causes;
    for (const resolve::Change& change : changes) causes.push_back(cause_of(change));
    print_causes(causes);
  }

  /// Checks that the recorded recipe has not been edited.
  void look_at_recorded_recipe() {
    const std::string hash = resolve::hash_of_recorded(recorded_);
    if (hash == original_.recipe_hash) return;
    causes_.push_back({original_.run_dir + "/resolved.json (hash of its values)", original_.recipe_hash,
                       hash + ": edited after the run"});
  }

  void say_what_differs(engine::Engine& engine) {
    look_at_recorded_recipe();
    for (const resolve::Change& change : changes_that_count(recorded_, recipe_->resolved())) {
      causes_.push_back(cause_of(change));
    }
    for (Cause& cause : artifact::list_causes(provenance_, current_provenance(engine)))
      causes_.push_back(std::move(cause));
    for (Cause& cause : changes_on_the_way()) causes_.push_back(std::move(cause));
    if (causes_.empty()) {
      std::printf("recipe, data, threads, CPU and program are the same as in %s\n",
                  core::escape_for_terminal(original_.run_dir).c_str());
    } else {
      std::printf("different from %s:\n", core::escape_for_terminal(original_.run_dir).c_str());
      print_causes(causes_);
    }
    std::fflush(stdout);
  }

  Provenance current_provenance(engine::Engine& engine) const {
    const auto environment = engine.environment(*recipe_);
    Provenance now = provenance_;
    now.version = core::program_version();
    now.source = core::source_hash();
    now.libtorch = environment.libtorch;
    now.cpu = core::cpu_name();
    now.cpu_capability = environment.cpu_capability;
    now.threads = environment.threads;
    now.environment = artifact::arithmetic_environment();
    now.data.clear();
    for (const artifact::DataFile& file : provenance_.data) {
      // If the run ended before the file had been read, only size and time can be compared.
      const auto found = file.checksum.empty() ? artifact::stat_data_file(file.set, file.path)
                                               : artifact::read_data_file(file.set, file.path);
      if (found) now.data.push_back(found.value());
    }
    return now;
  }

  /// Changes made by resumes of the original, which the reproduction does not repeat.
  std::vector<Cause> changes_on_the_way() const {
    std::vector<Cause> causes;
    const auto events = store::read_events(original_.run_dir);
    if (!events) return causes;
    for (const store::EventRow& event : events.value()) {
      const Node* changes = event.kind == "changes" ? event.data.find("changes") : nullptr;
      if (changes == nullptr) continue;
      for (const Node& change : changes->items()) {
        const auto text = [&change](const char* key) {
          const Node* value = change.find(key);
          return value != nullptr ? value->scalar_text() : "";
        };
        if (text("effect") == "harmless") continue;
        causes.push_back({text("key") + ", changed by the resume at step " + std::to_string(event.step) + ",",
                          text("before"), text("after") + " from there on, but not in the reproduction"});
      }
    }
    return causes;
  }

  /// The resumes that went on where the training had come to its end, with nothing changed but that end. They begin at
  /// the step that the one before ends at, and are trained as they were.
  std::vector<store::LineageSegment> lengthenings() const {
    std::vector<store::LineageSegment> found;
    auto segments = store::read_lineage(original_.run_dir);
    if (!segments || !is_as_recorded_ || !changes_.overrides.empty()) return found;
    std::reverse(segments.value().begin(), segments.value().end());
    const auto again = store::find_run(recipe_->output_dir, again_name(original_.name), core::system_clock());
    std::int64_t end = again ? again.value().step : 0;
    Node before = recorded_;
    for (std::size_t i = 1; i < segments.value().size(); ++i) {
      const store::LineageSegment& segment = segments.value()[i];
      const std::string path = store::branch_file(original_.run_dir, "resolved.json", segment.branch);
      auto now = resolve::read_recorded_recipe(original_.run_dir, path);
      if (!now) return found;
      const auto changes = changes_that_count(before, now.value());
      if (changes.empty()) continue;  // a resume of what was stopped
      const bool is_longer = std::all_of(changes.begin(), changes.end(), [](const resolve::Change& change) {
        return change.path.starts_with("training.max_") || change.path == "lr_scheduler.total_steps";
      });
      if (!is_longer || segments.value()[i - 1].last_step != end) return found;
      found.push_back(segment);
      end = segment.last_step;
      before = std::move(now).value();
    }
    return found;
  }

  /// Makes the recipe of this branch the one that is trained, on from the reproduction's last checkpoint.
  bool lengthen(std::int64_t branch) {
    const auto again = store::find_run(output_dir_, again_name(original_.name), core::system_clock());
    if (!again) {
      session_.fail(again.failure().message, again.failure().hint);
      return false;
    }
    resumed_ = again.value().run_dir;
    flags_.recipe.path = store::branch_file(original_.run_dir, "resolved.json", branch);
    recipe::ComposeOptions options = changes_;
    set(options, "output_dir", output_dir_);
    set(options, "run_name", again_name(original_.name));
    recipe_ = session_.load(flags_.recipe.path, options);
    if (!recipe_) return false;
    stay_on_device(*recipe_);
    std::printf("going on, as a resume of %s did\n", core::escape_for_terminal(original_.run_dir).c_str());
    std::fflush(stdout);
    return true;
  }

  bool train(engine::Engine& engine) {
    engine::TrainRequest request;
    request.start_new = resumed_.empty();
    if (!resumed_.empty()) {
      request.resume_run = resumed_;
      request.checkpoint = "last";
    }
    request.smoke = original_.smoke;
    request.command_line = artifact::hide_secrets(session_.command_line);
    request.progress_bar = isatty(STDERR_FILENO) == 1;
    request.quiet = session_.quiet;
    core::Diagnostics diagnostics;
    const int status = engine.train(*recipe_, request, diagnostics);
    session_.show(diagnostics);
    if (status == core::kExitDone) return true;
    session_.exit_code = status;
    return false;
  }

  /// The processes of the recipe, each with a `roux run` of what the original recorded.
  bool train_with_ranks() {
    std::vector<std::string> command = {session_.command_line.front(), "--output-dir", output_dir_, "--log-format",
                                        session_.log_format};
    if (session_.quiet) command.emplace_back("--quiet");
    if (session_.verbose) command.emplace_back("--verbose");
    command.insert(command.end(), {"run", flags_.recipe.path});
    if (resumed_.empty()) {
      command.emplace_back("--new");
    } else {
      command.insert(command.end(), {"--checkpoint", "last"});
    }
    if (original_.smoke) command.emplace_back("--smoke");
    for (const recipe::Override& change : changes_.overrides) {
      const bool is_file = change.kind == recipe::Override::Kind::kSetFile;
      command.insert(command.end(), {is_file ? "--set-file" : "--set", change.text});
    }
    for (const auto& [name, value] : changes_.ext) command.insert(command.end(), {"--ext", name + "=" + value});
    for (const std::string& value : as_overrides(former_values_)) command.insert(command.end(), {"--set", value});
    command.insert(command.end(), {"--set", "run_name=" + again_name(original_.name)});
    if (recipe_->device != "auto") command.insert(command.end(), {"--set", "device=" + recipe_->device});
    engine::TrainRequest request;
    request.smoke = original_.smoke;
    std::swap(session_.command_line, command);
    launch_ranks(session_, *recipe_, request);
    std::swap(session_.command_line, command);
    return session_.exit_code == core::kExitDone;
  }

  void compare() {
    const auto again = store::find_run(recipe_->output_dir, again_name(original_.name), core::system_clock());
    if (!again) return session_.fail(again.failure().message, again.failure().hint, core::kExitFailed);
    const bool to_the_end = original_.status == store::RunStatus::kFinished;
    const auto difference = review::compare_runs(original_.run_dir, again.value().run_dir, {to_the_end});
    if (!difference) return session_.fail(difference.failure().message, "", core::kExitFailed);
    const review::BitwiseDifference& found = difference.value();
    if (found.found.empty()) {
      std::printf("reproduced: %s is bit-identical", core::escape_for_terminal(again.value().run_dir).c_str());
      if (!to_the_end) std::printf(" up to the last step of the original");
      std::printf(" (%lld points of metrics", static_cast<long long>(found.points));
      if (found.tensors > 0) {
        std::printf(", %lld tensors at step %lld", static_cast<long long>(found.tensors),
                    static_cast<long long>(found.checkpoint_step));
      }
      std::printf(")\n");
      return;
    }
    std::printf("not reproduced; the first difference of %s:\n",
                core::escape_for_terminal(again.value().run_dir).c_str());
    for (const std::string& one : found.found) std::printf("  %s\n", core::escape_for_terminal(one).c_str());
    if (causes_.empty()) {
      std::printf("recipe, data, threads, CPU and program were the same: training is not deterministic\n");
      session_.fail("the run was not reproduced",
                    "set deterministic: true, which refuses operations without a fixed order of summation",
                    core::kExitFailed);
    } else {
      std::printf("%s:\n", causes_.size() == 1 ? "the cause" : "possible causes");
      print_causes(causes_);
      session_.fail("the run was not reproduced", "", core::kExitFailed);
    }
  }

  Session& session_;
  ReproduceFlags& flags_;
  store::RunSummary original_;
  Provenance provenance_;
  Node recorded_;
  Node former_values_ = Node::mapping();  ///< of the original, where the recipe leaves keys unset
  recipe::ComposeOptions changes_;        ///< of the command line
  std::string output_dir_;
  std::string resumed_;  ///< the folder of the reproduction, where it goes on; "" for its beginning
  bool is_as_recorded_ = false;
  std::optional<resolve::Recipe> recipe_;
  std::vector<Cause> causes_;
};

}  // namespace

void reproduce(Session& session, ReproduceFlags& flags) {
  ::setenv("ROUX_COMMANDS", "off", 1);  // a run of others starts no programs here, and what was done is not done again
  Reproduction(session, flags).run();
}

}  // namespace runner::cli
