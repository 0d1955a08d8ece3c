#include "runner/sweep/trial/replay.h"

#include <poll.h>

#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/manifest.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/sweep/study/outcome.h"
#include "runner/sweep/study/variant_summary.h"
#include "runner/sweep/trial/lineage.h"

namespace runner::sweep {
namespace {

constexpr int kTick_ms = 500;

Trainings::End wait_for_end(Trainings& trainings) {
  for (;;) {
    std::vector<pollfd> waiting;
    for (const int descriptor : trainings.descriptors()) waiting.push_back({descriptor, POLLIN, 0});
    poll(waiting.data(), waiting.size(), kTick_ms);
    const std::vector<Trainings::End> ended = trainings.take_ended();
    if (!ended.empty()) return ended.front();
  }
}

/// By the checksums of the files that hold tensors: what else is there names runs and times.
core::Result<std::string> difference_of(const std::string& one, const std::string& other) {
  const auto before = artifact::read_manifest(one), now = artifact::read_manifest(other);
  if (!before) return before.failure();
  if (!now) return now.failure();
  std::string different;
  for (const artifact::FileEntry& file : before.value().files) {
    if (!file.name.ends_with(".safetensors")) continue;
    bool same = false;
    for (const artifact::FileEntry& again : now.value().files) {
      same = same || (again.name == file.name && again.checksum == file.checksum);
    }
    if (!same) different += (different.empty() ? "not the same: " : ", ") + file.name;
  }
  return different;
}

/// The newest whole one of a run; of a segment that is where it ended.
core::Result<artifact::CheckpointInfo> last_checkpoint(const std::string& run_dir) {
  const auto all = artifact::list_checkpoints(run_dir + "/checkpoints");
  if (all.empty()) return core::Failure{"run " + run_dir + " has left no checkpoint", "checkpoint.save_at_end: true"};
  return all.back();
}

}  // namespace

core::Result<std::vector<Replayed>> replay(const Sweep& sweep, Study& study, std::int64_t number,
                                           Trainings& trainings) {
  const std::string output_dir = output_dir_of(sweep, study);
  const std::vector<Variant>& variants = study.variants();
  const std::vector<Trial>& trials = study.trials();
  std::vector<Replayed> list;
  std::optional<resolve::Recipe> before;
  core::make_folders(study.folder() + "/replays").value();
  for (const std::int64_t variant : lineage_of(variants, trials.at(static_cast<std::size_t>(number)).variant)) {
    const bool is_asked_for = variant == trials.at(static_cast<std::size_t>(number)).variant;
    const Trial trial = trials.at(static_cast<std::size_t>(is_asked_for ? number : variant));
    const std::string run_name = trial_run_name(study, trial.number) + "-replay";
    auto recipe = trial_recipe(sweep, study, trial, run_name);
    if (!recipe) return recipe.failure();
    const std::string path = study.folder() + "/replays/" + run_name + ".json";
    core::write_file_atomic(path, recipe.value().resolved_json()).value();
    std::vector<std::string> words = {"run", path, "--new", "--quiet", "--output-dir", output_dir};
    if (before) {
      const auto more = resume_arguments(list.back().checkpoint, *before, recipe.value());
      words.insert(words.end(), more.begin(), more.end());
    }
    trainings.start(trial.number, {std::move(words), "", nullptr});
    const Trainings::End end = wait_for_end(trainings);
    const auto run = find_trial_run(output_dir, run_name, core::system_clock());
    if (end.status != core::kExitDone || !run) {
      return core::Failure{"trial " + std::to_string(trial.number) + " did not reach its end again: " + end.words, "",
                           core::kExitFailed};
    }
    const auto saved = last_checkpoint(run->run_dir);
    if (!saved) return saved.failure();
    list.push_back({trial.number, saved.value().step, saved.value().path, std::nullopt});
    if (const auto own = checkpoint_at(trial_run_dir(study, output_dir, trial), saved.value().step)) {
      const auto difference = difference_of(own.value(), saved.value().path);
      if (!difference) return difference.failure();
      list.back().difference = difference.value();
    }
    before = std::move(recipe).value();
  }
  return list;
}

}  // namespace runner::sweep
