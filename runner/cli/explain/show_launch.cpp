#include "runner/cli/explain/show_launch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/launch_config.h"
#include "runner/cli/minimal_recipe.h"
#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/launch/cpu_affinity.h"
#include "runner/launch/rank_environment.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::cli {
namespace {

using core::Node;

std::string starter() {
  const auto started = launch::rank_from_environment();
  if (!started) return started.failure().message;
  if (!started.value()) return "no launcher; roux starts the processes";
  const launch::LaunchedRank& rank = *started.value();
  const core::RankInfo& info = rank.info;
  return (rank.launcher.empty() ? "RANK and WORLD_SIZE" : rank.launcher) + ": process " + std::to_string(info.rank) +
         " of " + std::to_string(info.size) + ", " + std::to_string(info.local_rank) + " of " +
         std::to_string(info.local_size) + " here; rendezvous at " + info.master_addr + ":" +
         std::to_string(info.master_port);
}

/// The `programs` that are in PATH.
std::vector<std::string> found(std::initializer_list<const char*> programs) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> there;
  for (const char* program : programs) {
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (access((folder + "/" + program).c_str(), X_OK) != 0) continue;
      there.emplace_back(program);
      break;
    }
  }
  return there;
}

void show_launchers(EnvPage& page) {
  const std::vector<std::string> launchers = found({"ssh", "srun", "sbatch", "mpirun"});
  page.line("launchers", launchers.empty() ? "none" : core::joined(launchers));
  Node list = Node::sequence();
  for (const std::string& launcher : launchers) list.items().push_back(Node::string(launcher));
  page.set("launchers", std::move(list));
}

/// The values that are set, each with its origin.
void show_settings(const resolve::Recipe& recipe, EnvPage& page) {
  Node settings = Node::mapping();
  const auto show = [&](const std::string& key, const Node& value, const core::Location& location) {
    if (!location.known() || location.source->kind == core::Source::Kind::kDefault) return;
    page.line(key, core::to_json(value, -1) + "  from " + location.text());
    Node setting = Node::mapping();
    setting.set("value", value);
    setting.set("from", Node::string(location.text()));
    settings.set(key, std::move(setting));
  };
  for (const Node::Entry& entry : recipe.at("launch").entries()) {
    if (!entry.value.is_null()) show("launch." + entry.key, entry.value, entry.value.location());
  }
  for (const char* key : {"device", "precision.mode", "parallelism.shard"})
    show(key, recipe.at(key), recipe.location(key));
  page.set("settings", std::move(settings));
}

std::optional<resolve::Recipe> recipe_here(Session& session, const RecipeFlags& flags) {
  if (!flags.path.empty()) return session.load(flags);
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options = compose_options(flags, diagnostics);
  options.below = config_in_use(diagnostics);
  const auto any = std::make_shared<const core::Source>(core::Source{"no recipe", kMinimalRecipe});
  auto recipe = resolve::load_recipe_text(any, options, registry::Registry::builtin(), diagnostics);
  session.show(diagnostics);
  if (!recipe) session.exit_code = core::kExitUsage;
  return recipe;
}

}  // namespace

void show_launch(Session& session, const RecipeFlags& flags, EnvPage& page) {
  const std::string file = config_path();
  std::error_code ignored;
  const bool exists = !file.empty() && std::filesystem::exists(file, ignored);
  page.line("launch file", file.empty() ? "none (ROUX_CONFIG_FILE is empty)" : exists ? file : "none (" + file + ")");
  page.set("launch_file", exists ? Node::string(file) : Node::null());
  if (const auto recipe = recipe_here(session, flags)) show_settings(*recipe, page);
  page.add("started by", starter(), "started_by");
  if (const char* job = std::getenv("SLURM_JOB_ID")) page.add("Slurm job", job, "slurm_job");
  show_launchers(page);
  const auto cores = static_cast<std::int64_t>(launch::own_cores_by_node().size());
  page.line("cores", std::to_string(cores) + " for this process");
  page.set("cores_of_process", Node::integer(cores));
}

}  // namespace runner::cli
