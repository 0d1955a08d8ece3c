#include "runner/sweep/studies.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/resolve/former_values.h"
#include "runner/store/database/text.h"
#include "runner/sweep/limits.h"
#include "runner/sweep/next_variant.h"
#include "runner/sweep/pruning.h"
#include "runner/sweep/spec/store_address.h"
#include "runner/sweep/study/observation_list.h"
#include "runner/sweep/study/postgres_store.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kUnfinished = ".new";  // of a folder, which is no sweep's name then
constexpr std::size_t kRunNameMax = 80;           // that of a trial has an id and a number beside it

/// The newest first.
std::vector<std::string> sorted(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return !store::parse_folder_name(name); });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return store::parse_folder_name(a)->id > store::parse_folder_name(b)->id;
  });
  return names;
}

/// Names of the sweeps in a store, or in the folder where `address` is "".
core::Result<std::vector<std::string>> study_names(const std::string& output_dir, const std::string& address) {
  if (address.empty()) return sweep_names(output_dir);
  return core::attempt([&] { return sorted(PostgresStore::names(address)); });
}

/// One of those names.
core::Result<std::unique_ptr<Study>> open_study(const std::string& output_dir, const std::string& address,
                                                const std::string& name) {
  const std::string folder = sweeps_dir(output_dir) + "/" + name;
  if (!address.empty()) {
    if (auto pointed = link_study(folder, address, name); !pointed) return pointed.failure();
  }
  return Study::open(folder);
}

/// Threads of each trial's process, if the recipe does not set them: results must not depend on where and by which
/// worker the sweep is resumed.
std::int64_t threads_of(const Sweep& sweep) {
  if (!sweep.base().at("launch.num_cpu_threads_per_process").is_null()) return 0;
  const std::int64_t cores = std::thread::hardware_concurrency();
  const std::int64_t processes =
      sweep.config().max_concurrent_trials * sweep.base().at("launch.num_processes").as_integer();
  return std::max<std::int64_t>(1, cores / processes);
}

void remove_unfinished(const std::string& sweeps) {
  const auto names = core::list_folder(sweeps);
  if (!names) return;  // there is none yet
  for (const std::string& name : names.value()) {
    if (!name.ends_with(kUnfinished) || !store::parse_folder_name(name.substr(0, name.size() - kUnfinished.size())))
      continue;
    std::error_code stays;
    fs::remove_all(fs::path(sweeps) / name, stays);
  }
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

core::Result<std::vector<std::string>> sweep_names(const std::string& output_dir) {
  auto names = core::list_folder(sweeps_dir(output_dir));
  if (!names) return names.failure();
  return sorted(std::move(names).value());
}

core::Result<std::unique_ptr<Study>> begin_study(const Sweep& sweep, const core::Clock& clock, bool stand_in) {
  StudyInfo info;
  const std::string& run_name = sweep.base().at("run_name").as_string();
  if (run_name.size() > kRunNameMax) {
    return core::Failure{"run_name has " + std::to_string(run_name.size()) + " characters, but a sweep's has at most " +
                             std::to_string(kRunNameMax),
                         "each trial adds an id and a number to it", core::kExitUsage};
  }
  info.created_ms = clock.wall_ms();
  info.name = run_name + "-" + store::new_run_id(info.created_ms);
  info.recipe_path = sweep.base().path;
  info.recipe_dir = sweep.recipe_dir();
  info.recipe_json = sweep.identity();
  info.threads = threads_of(sweep);
  info.unset_json = core::to_json(resolve::unset_values(sweep.base().root), -1);
  info.stand_in = stand_in;
  info.store = sweep.config().store.value_or("");
  info.lease_ms = lease_ms_of(sweep);
  const std::string sweeps = sweeps_dir(sweep.base().at("output_dir").as_string());
  remove_unfinished(sweeps);
  const std::string folder = sweeps + "/" + info.name, unfinished = folder + std::string(kUnfinished);
  if (auto made = core::make_folders(unfinished); !made) return made.failure();
  if (auto made = Study::create(unfinished, info); !made) return made.failure();
  std::error_code refused;
  fs::rename(unfinished, folder, refused);
  if (refused) return core::Failure{"cannot create " + folder + ": " + refused.message()};
  return Study::open(folder);
}

core::Result<std::unique_ptr<Study>> find_study(const std::string& output_dir, const std::string& text) {
  std::string folder = text;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (is_study(folder)) return Study::open(folder);
  StoreAddress address{"", text};
  if (is_store_address(text)) {
    auto read = read_store_address(text);
    if (!read) return read.failure();
    address = read.value();
    if (address.sweep.empty()) address.sweep = "last";
  }
  const std::string where = address.store.empty() ? output_dir : address.store;
  const auto names = study_names(output_dir, address.store);
  if (!names) return names.failure();
  if (names.value().empty()) {
    return core::Failure{"there is no sweep in " + where, "roux sweep run RECIPE starts one", core::kExitUsage};
  }
  if (const std::string name = named_by(names.value(), address.sweep); !name.empty())
    return open_study(output_dir, address.store, name);
  std::vector<std::string> words = names.value();
  for (const std::string& name : names.value()) words.push_back(store::parse_folder_name(name)->run_name);
  const std::string near = core::closest(address.sweep, words);
  return core::Failure{"no sweep in " + where + " is called \"" + address.sweep + "\"",
                       near.empty() ? "the newest is " + names.value().front() : "did you mean \"" + near + "\"?",
                       core::kExitUsage};
}

core::Result<std::unique_ptr<Study>> newest_study(const Sweep& sweep) {
  const std::string& output_dir = sweep.base().at("output_dir").as_string();
  const std::string address = sweep.config().store.value_or("");
  const auto names = study_names(output_dir, address);
  if (!names) return names.failure();
  for (const std::string& name : names.value()) {
    if (store::parse_folder_name(name)->run_name == sweep.base().at("run_name").as_string())
      return open_study(output_dir, address, name);
  }
  return std::unique_ptr<Study>();
}

std::optional<recipe::Composed> as_written(const core::Node& recipe, const std::string& name,
                                           const std::string& recipe_dir, core::Diagnostics& diagnostics) {
  const auto source =
      std::make_shared<const core::Source>(core::Source{name, core::to_json(recipe), core::Source::Kind::kFile});
  auto root = recipe::read_json(source, {}, diagnostics);
  if (!root) return std::nullopt;
  recipe::rename_keys(*root);
  return recipe::Composed{*std::move(root), {source}, recipe_dir};
}

std::optional<Sweep> recorded_sweep(const Study& study, core::Diagnostics& diagnostics) {
  const StudyInfo& info = study.info();
  auto open = as_written(core::parse_json(info.recipe_json).value(), "the recipe of sweep " + info.name,
                         info.recipe_dir, diagnostics);
  if (!open) return std::nullopt;
  return Sweep::read(info.recipe_path, *std::move(open), diagnostics);
}

std::int64_t lease_ms_of(const Sweep& sweep) { return static_cast<std::int64_t>(sweep.config().worker_timeout * 1000); }

bool is_finished(const Sweep& sweep, Study& study) {
  const std::vector<Variant>& variants = study.variants();
  const std::vector<Trial>& trials = study.trials();
  const bool reached = has_limits(sweep) && !study.end_reason().empty();
  const bool open = std::any_of(trials.begin(), trials.end(), [reached](const Trial& trial) {
    return trial.state == TrialState::kRunning || (trial.state == TrialState::kWaiting && !reached);
  });
  if (open) return false;
  if (reached) return true;
  if (Pruning(sweep, study).promoted()) return false;
  const auto most = sweep.config().n_trials;
  if (most && static_cast<std::int64_t>(variants.size()) >= *most) return true;
  return !next_variant(sweep, ObservationList(sweep).update(study.changes(), variants, trials));
}

}  // namespace runner::sweep
