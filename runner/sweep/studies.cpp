#include "runner/sweep/studies.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "runner/core/files.h"
#include "runner/core/json.h"
#include "runner/core/suggest.h"
#include "runner/recipe/compose.h"
#include "runner/store/text.h"
#include "runner/sweep/limits.h"
#include "runner/sweep/next_variant.h"
#include "runner/sweep/pruning.h"
#include "runner/sweep/standing.h"
#include "runner/sweep/tried_list.h"

namespace runner::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunNameMax = 80;  // that of a trial has an id and a number beside it

/// Folder names, the newest first.
std::vector<std::string> study_names(const std::string& output_dir) {
  std::vector<std::string> names;
  const std::vector<std::string> folders = core::list_folder(sweeps_dir(output_dir)).value();
  for (const std::string& name : folders) {
    if (store::parse_folder_name(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return store::parse_folder_name(a)->id > store::parse_folder_name(b)->id;
  });
  return names;
}

/// Of each trial's process, where the recipe leaves it open: what makes its results does not depend on who goes on with
/// the sweep, and where.
std::int64_t threads_of(const Sweep& sweep) {
  if (!sweep.base().at("launch.num_cpu_threads_per_process").is_null()) return 0;
  const std::int64_t cores = std::thread::hardware_concurrency();
  const std::int64_t processes =
      sweep.config().max_concurrent_trials * sweep.base().at("launch.num_processes").as_integer();
  return std::max<std::int64_t>(1, cores / processes);
}

std::string named_by(const std::vector<std::string>& names, const std::string& text) {
  std::vector<std::string> by_prefix;
  for (const std::string& name : names) {
    const auto parts = store::parse_folder_name(name);
    if (text == "last" || text == name || text == parts->id || text == parts->run_name) return name;
    if (parts->id.starts_with(text)) by_prefix.push_back(name);
  }
  return by_prefix.size() == 1 ? by_prefix.front() : "";
}

}  // namespace

std::string sweeps_dir(const std::string& output_dir) { return output_dir + "/sweeps"; }

core::Result<std::unique_ptr<Study>> begin_study(const Sweep& sweep, const core::Clock& clock) {
  StudyInfo info;
  const std::string& run_name = sweep.base().at("run_name").as_string();
  if (run_name.size() > kRunNameMax) {
    return core::Failure{"run_name has " + std::to_string(run_name.size()) +
                             " characters, and of a sweep it has at most " + std::to_string(kRunNameMax),
                         "each trial adds an id and a number to it", core::kExitUsage};
  }
  info.created_ms = clock.wall_ms();
  info.name = run_name + "-" + store::new_run_id(info.created_ms);
  info.recipe_path = sweep.base().path;
  info.recipe_dir = sweep.recipe_dir();
  info.recipe_json = sweep.identity();
  info.threads = threads_of(sweep);
  const std::string folder = sweeps_dir(sweep.base().at("output_dir").as_string()) + "/" + info.name;
  if (auto made = core::make_folders(folder); !made) return made.failure();
  return Study::create(folder, info);
}

core::Result<std::unique_ptr<Study>> find_study(const std::string& output_dir, const std::string& text) {
  std::error_code ignored;
  if (fs::exists(study_db_path(text), ignored)) return Study::open(text);
  const std::vector<std::string> names = study_names(output_dir);
  if (names.empty()) {
    return core::Failure{"there is no sweep in " + output_dir, "roux sweep run RECIPE begins one", core::kExitUsage};
  }
  if (const std::string name = named_by(names, text); !name.empty())
    return Study::open(sweeps_dir(output_dir) + "/" + name);
  std::vector<std::string> words = names;
  for (const std::string& name : names) words.push_back(store::parse_folder_name(name)->run_name);
  const std::string near = core::closest(text, words);
  return core::Failure{"no sweep in " + output_dir + " is called \"" + text + "\"",
                       near.empty() ? "the newest is " + names.front() : "did you mean \"" + near + "\"?",
                       core::kExitUsage};
}

core::Result<std::unique_ptr<Study>> newest_study(const std::string& output_dir, const std::string& run_name) {
  for (const std::string& name : study_names(output_dir)) {
    if (store::parse_folder_name(name)->run_name == run_name) return Study::open(sweeps_dir(output_dir) + "/" + name);
  }
  return std::unique_ptr<Study>();
}

std::optional<Sweep> recorded_sweep(const Study& study, core::Diagnostics& diagnostics) {
  recipe::Composed open;
  open.root = core::parse_json(study.info().recipe_json).value();
  open.recipe_dir = study.info().recipe_dir;
  return Sweep::read(study.info().recipe_path, std::move(open), diagnostics);
}

bool is_over(const Sweep& sweep, Study& study) {
  const std::vector<Variant>& variants = study.variants();
  const std::vector<Trial>& trials = study.trials();
  const bool reached = has_limits(sweep) && !study.end_reason().empty();
  const bool open = std::any_of(trials.begin(), trials.end(), [reached](const Trial& trial) {
    return trial.state == TrialState::kRunning || (trial.state == TrialState::kWaiting && !reached);
  });
  if (open) return false;
  if (reached) return true;
  if (promoted(sweep, study)) return false;
  const auto most = sweep.config().n_trials;
  if (most && static_cast<std::int64_t>(variants.size()) >= *most) return true;
  return !next_variant(sweep, TriedList(sweep).update(study.changes(), variants, trials));
}

}  // namespace runner::sweep
