#include "runner/train/save/resume.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "components/tensor/cpu_capability.h"
#include "generated/section/checkpoint.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/checkpoint_name.h"
#include "runner/artifact/manifest.h"
#include "runner/checkpoint/checkpoint_prefetch.h"
#include "runner/checkpoint/fit.h"
#include "runner/resolve/changes.h"
#include "runner/resolve/former_values.h"
#include "runner/store/run_reader.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/save/data_changes.h"
#include "runner/train/save/lineage_checkpoints.h"

namespace runner::train {
namespace {

namespace fs = std::filesystem;

using artifact::CheckpointInfo;
using core::Diagnostics;
using core::Node;

std::string owner_text(const store::LeaseOwner& owner) {
  return "process " + std::to_string(owner.pid) + " on " + owner.host;
}

class Chooser {
 public:
  Chooser(const resolve::Recipe& recipe, const TrainRequest& request, const Experiment* experiment,
          const checkpoint::CheckpointPrefetch* prefetched, const core::Clock& clock, Diagnostics& diagnostics)
      : recipe_(recipe),
        request_(request),
        experiment_(experiment),
        prefetched_(prefetched),
        clock_(clock),
        diagnostics_(diagnostics) {}

  Start choose() {
    const std::string& wish = recipe_.checkpoint->resume_from_checkpoint;
    if (!request_.checkpoint.empty()) {
      use_named();
    } else if (request_.resume_run) {
      if (const auto run = found_run(*request_.resume_run)) go_on(*run, newest_of(*run));
    } else if (request_.start_new || request_.smoke || wish == "never") {
      start_ = {};
    } else if (wish != "auto") {
      use_path(wish, recipe_.location("checkpoint.resume_from_checkpoint"), /*may_go_on=*/true);
    } else if (const auto run = store::newest_unfinished(output_dir(), run_name(), clock_, &start_.notes)) {
      go_on(*run, newest_of(*run));
    }
    if (!start_.resume && start_.checkpoint.empty()) {
      allowed_keys_are_known(request_.allow_changes, {}, recipe_.root, diagnostics_);
    }
    return std::move(start_);
  }

 private:
  const std::string& output_dir() const { return recipe_.output_dir; }
  const std::string& run_name() const { return recipe_.run_name; }
  void refuse(const core::Location& location, const core::Failure& failure) {
    diagnostics_.error(location, failure.message, failure.hint);
  }

  std::optional<store::RunSummary> found_run(const std::string& text) {
    auto run = store::find_run(output_dir(), text, clock_);
    if (run) return std::move(run).value();
    refuse({}, run.failure());
    return std::nullopt;
  }

  /// `--checkpoint`: a path, or a name in the run being resumed, else in the newest run of this run_name.
  void use_named() {
    std::error_code ignored;
    const std::string& name = request_.checkpoint;
    if (fs::is_directory(name, ignored)) return use_path(name, {}, is_requeued());
    if (name.find('/') != std::string::npos) {
      return refuse({}, {"there is no checkpoint " + name, "`roux checkpoints list` shows what a run has"});
    }
    std::optional<store::RunSummary> run;
    if (request_.resume_run) {
      run = found_run(*request_.resume_run);
      if (!run) return;
    } else {
      for (auto& one : store::list_runs(output_dir(), clock_)) {
        if (one.name != run_name() || one.smoke || artifact::list_checkpoints(one.run_dir + "/checkpoints").empty())
          continue;
        run = std::move(one);
        break;
      }
      if (!run) {
        return refuse({}, {"no run of run_name " + run_name() + " in " + output_dir() + " has a checkpoint",
                           "train it first, or give the path of a checkpoint folder"});
      }
    }
    const auto path =
        artifact::find_checkpoint(artifact::checkpoints_of(run->run_dir, run->id, run->resolved), name, start_.notes);
    if (!path) return refuse({}, path.failure());
    use_path(path.value(), {}, is_requeued());
  }

  /// Slurm starts the same command again, whatever it names.
  static bool is_requeued() {
    const char* count = std::getenv("SLURM_RESTART_COUNT");
    return count != nullptr && std::atoi(count) > 0;
  }

  /// `may_go_on`: if this training began at the checkpoint and was stopped, from its newest checkpoint instead. Else a
  /// job that is started again with the same recipe would never get beyond one slice of time.
  void use_path(std::string path, const core::Location& location, bool may_go_on) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    auto manifest = experiment_ != nullptr ? verified(path) : artifact::read_manifest(path);
    if (!manifest) return refuse(location, manifest.failure());
    CheckpointInfo info{path, manifest.value().fields.step, std::move(manifest).value()};
    const fs::path run_dir = fs::path(path).parent_path().parent_path();
    std::error_code ignored;
    if (!fs::exists(run_dir / "run.db", ignored)) {
      // A checkpoint that was copied elsewhere: its state, in a new run.
      if (may_go_on && went_on_in_own_run(path)) return;
      if (contract_holds(nullptr, info)) start_.checkpoint = path;
      return;
    }
    const auto run = store::find_run(run_dir.parent_path().string(), run_dir.string(), clock_);
    if (!run) return refuse(location, run.failure());
    if (request_.start_new) {
      if (contract_holds(&run.value(), info)) start_.checkpoint = path;
      return;
    }
    if (may_go_on && run.value().status != store::RunStatus::kFinished && branch_begun_at(run.value(), info)) {
      const auto newest = newest_of(run.value());
      if (newest && newest->step > info.step) return go_on_from(run.value(), *newest, path);
    }
    go_on(run.value(), info);
  }

  /// The branch that grew from this checkpoint, if that is the run's newest one or one that it grew from.
  static std::optional<std::int64_t> branch_begun_at(const store::RunSummary& run, const CheckpointInfo& info) {
    const auto lineage = store::read_lineage(run.run_dir);
    if (!lineage) return std::nullopt;
    const auto& segments = lineage.value();
    for (std::size_t i = 1; i < segments.size(); ++i) {
      if (segments[i].branch == info.manifest.fields.branch && segments[i].last_step == info.step)
        return segments[i - 1].branch;
    }
    return std::nullopt;
  }

  bool went_on_in_own_run(const std::string& path) {
    const auto run = store::newest_unfinished(output_dir(), run_name(), clock_, &start_.notes);
    if (!run) return false;
    const auto recorded =
        resolve::read_recorded_recipe(run->run_dir, store::branch_file(run->run_dir, "resolved.json"));
    const Node* from = recorded ? recorded.value().at_path("checkpoint.resume_from_checkpoint") : nullptr;
    if (from == nullptr || from->scalar_text() != recipe_.checkpoint->resume_from_checkpoint) return false;
    const auto newest = newest_of(*run);
    if (newest) go_on_from(*run, *newest, path);
    return newest.has_value();
  }

  void go_on_from(const store::RunSummary& run, const CheckpointInfo& newest, const std::string& began_at) {
    start_.notes.push_back("continues from " + newest.path + ", the newest checkpoint of the training that began at " +
                           began_at + "; --checkpoint " + began_at + " begins there again");
    go_on(run, newest);
  }

  core::Result<artifact::Manifest> verified(const std::string& path) const {
    return prefetched_ != nullptr && prefetched_->checkpoint() == path ? prefetched_->verification()
                                                                       : artifact::verify_checkpoint(path);
  }

  /// On the run's current branch: a checkpoint of an abandoned branch is older than it looks.
  std::optional<CheckpointInfo> newest_of(const store::RunSummary& run) {
    std::vector<CheckpointInfo> all = artifact::list_checkpoints(run.run_dir + "/checkpoints");
    const std::vector<CheckpointInfo> own = lineage_checkpoints(run.run_dir, run.id);
    const auto belongs = [&own](const CheckpointInfo& info) {
      return std::any_of(own.begin(), own.end(), [&info](const CheckpointInfo& one) { return one.path == info.path; });
    };
    // Those of the lineage come last, so that they are tried first.
    std::erase_if(all, belongs);
    all.insert(all.end(), own.begin(), own.end());
    std::optional<CheckpointInfo> newest;
    for (auto info = all.rbegin(); info != all.rend() && !newest; ++info) {
      if (info->manifest.fields.run_id != run.id) {
        note_skipped(info->path + " belongs to run " + info->manifest.fields.run_id + ", not to this one");
      } else if (const auto whole = experiment_ == nullptr ? info->manifest : verified(info->path); !whole) {
        note_skipped(whole.failure().message);
      } else {
        newest = *info;
      }
    }
    for (const auto& [path, failure] : artifact::list_damaged(run.run_dir + "/checkpoints")) {
      note_skipped(failure.message);
    }
    return newest;
  }

  void note_skipped(const std::string& what) { start_.notes.push_back("skipped " + what); }

  void go_on(const store::RunSummary& run, const std::optional<CheckpointInfo>& checkpoint) {
    if (run.owner) {
      return refuse({}, {"run " + run.run_dir + " is still being trained by " + owner_text(*run.owner),
                         "wait for it, stop it, or start another run beside it with --new"});
    }
    if (!contract_holds(&run, checkpoint)) return;
    start_.resume = store::ResumePoint{run.run_dir, 0, 0};
    if (!checkpoint) return;
    start_.resume->step = checkpoint->step;
    start_.resume->branch = checkpoint->manifest.fields.branch;
    start_.checkpoint = checkpoint->path;
  }

  /// Without a checkpoint environment and data cannot have influenced the training yet.
  bool contract_holds(const store::RunSummary* run, const std::optional<CheckpointInfo>& checkpoint) {
    const Node present = recipe_.resolved();
    Recorded recorded;
    recorded.recipe = present;
    if (run != nullptr && !read_recorded(*run, checkpoint, recorded)) return false;
    if (run != nullptr) {
      start_.device = recorded_device(recorded.recipe);
      start_.backend = recorded_backend(recorded.recipe);
      start_.former_values = resolve::former_values(present, recorded.recipe);
    }
    if (checkpoint) recorded.environment = environment_of(checkpoint->manifest.fields);
    const std::string path = checkpoint ? checkpoint->path : "";
    auto differences =
        list_differences(recorded, {present, current_environment(), [this, path] { return mismatch(path); }});
    const auto files = experiment_ != nullptr ? std::optional(experiment_->train_data->files()) : std::nullopt;
    const bool other_path = std::any_of(differences.begin(), differences.end(), is_path_of_training_data);
    if (other_path && recorded.provenance) {
      // The same bytes elsewhere are the same data. Before it is opened that is not known, and left to choose_start().
      auto moved = files ? with_training_data_at(*recorded.provenance, *files) : std::nullopt;
      if (moved || (!files && may_have_moved(*recorded.provenance))) {
        for (Difference& difference : differences) {
          if (is_path_of_training_data(difference)) difference.effect = Effect::kHarmless;
        }
        recorded.provenance = std::move(moved);
      }
    }
    if (checkpoint && recorded.provenance) {
      for (Difference& change : list_data_changes(*recorded.provenance, present, files)) {
        differences.push_back(std::move(change));
      }
    }
    std::vector<std::string> allowed = request_.allow_changes;
    if (run != nullptr && checkpoint)
      add_allowed_before(*run, *checkpoint, recorded.recipe, present, differences, allowed);
    if (!may_resume(differences, allowed, present, diagnostics_)) return false;
    start_.differences = std::move(differences);
    return true;
  }

  bool read_recorded(const store::RunSummary& run, const std::optional<CheckpointInfo>& checkpoint,
                     Recorded& recorded) {
    // Changes allowed when a newer branch was opened stay allowed, even if it has not saved anything yet.
    const bool named = !request_.checkpoint.empty();
    const std::int64_t branch = checkpoint && named ? checkpoint->manifest.fields.branch : -1;
    auto recipe = resolve::read_recorded_recipe(run.run_dir, store::branch_file(run.run_dir, "resolved.json", branch));
    if (!recipe) {
      refuse({}, recipe.failure());
      return false;
    }
    recorded.recipe = std::move(recipe).value();
    if (checkpoint && !named) {
      const auto own = resolve::read_recorded_recipe(
          run.run_dir, store::branch_file(run.run_dir, "resolved.json", checkpoint->manifest.fields.branch));
      if (own) recorded.processes = recorded_processes(own.value());
    }
    const std::string file = store::branch_file(run.run_dir, artifact::kProvenanceFile, branch);
    if (file.empty()) return true;  // the run was stopped before it had read its data
    auto provenance = artifact::read_provenance(file);
    if (provenance) {
      recorded.provenance = std::move(provenance).value();
    } else {
      start_.notes.push_back("cannot tell whether the data changed: " + provenance.failure().message);
    }
    return true;
  }

  /// What was allowed when the run's newest branch, or one that it grew from, began at this checkpoint: whoever goes
  /// back there with the run's present recipe has allowed it.
  static void add_allowed_before(const store::RunSummary& run, const CheckpointInfo& checkpoint, const Node& recorded,
                                 const Node& present, const std::vector<Difference>& differences,
                                 std::vector<std::string>& allowed) {
    const auto branch = branch_begun_at(run, checkpoint);
    if (!branch) return;
    const auto recipe =
        resolve::read_recorded_recipe(run.run_dir, store::branch_file(run.run_dir, "resolved.json", *branch));
    if (!recipe) return;
    const auto since = resolve::list_changes(recipe.value(), present);
    const auto has = [](const auto& all, const std::string& path, auto member) {
      return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.*member == path; });
    };
    for (const resolve::Change& change : resolve::list_changes(recorded, present)) {
      if (!has(since, change.path, &resolve::Change::path) && has(differences, change.path, &Difference::key))
        allowed.push_back(change.path);
    }
  }

  static ArithmeticEnvironment environment_of(const artifact::ManifestFields& fields) {
    const Node* libtorch = fields.program.find("libtorch");
    return {fields.threads, fields.cpu_capability,
            libtorch != nullptr && libtorch->is_string() ? libtorch->as_string() : ""};
  }

  /// Uses a model on the meta device if there is no other yet. Errors of the recipe itself are reported when it is
  /// built.
  std::string mismatch(const std::string& checkpoint) const {
    if (checkpoint.empty()) return "";
    if (experiment_ != nullptr) return checkpoint::first_mismatch(checkpoint, *experiment_->model);
    Diagnostics ignored;
    BuildOptions options;
    options.meta = true;
    options.for_training = false;
    options.data_sets = {"train"};
    const auto sketch = build_experiment(recipe_, options, ignored);
    return sketch == nullptr ? "" : checkpoint::first_mismatch(checkpoint, *sketch->model);
  }

  const resolve::Recipe& recipe_;
  const TrainRequest& request_;
  const Experiment* experiment_;
  const checkpoint::CheckpointPrefetch* prefetched_;
  const core::Clock& clock_;
  Diagnostics& diagnostics_;
  Start start_;
};

}  // namespace

ArithmeticEnvironment current_environment() {
  return {at::get_num_threads(), components::cpu_capability(), TORCH_VERSION};
}

Start choose_start(const resolve::Recipe& recipe, const TrainRequest& request, const Experiment& experiment,
                   const checkpoint::CheckpointPrefetch* prefetched, const core::Clock& clock,
                   Diagnostics& diagnostics) {
  return Chooser(recipe, request, &experiment, prefetched, clock, diagnostics).choose();
}

Start preview_start(const resolve::Recipe& recipe, const TrainRequest& request, const core::Clock& clock,
                    Diagnostics& diagnostics) {
  return Chooser(recipe, request, nullptr, nullptr, clock, diagnostics).choose();
}

}  // namespace runner::train
