#include "runner/cli/launch_set_up.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "runner/cli/any_recipe.h"
#include "runner/cli/launch_config.h"
#include "runner/core/error.h"
#include "runner/launch/cpu_affinity.h"
#include "runner/launch/rank_environment.h"
#include "runner/registry/registry.h"
#include "runner/resolve/load.h"

namespace runner::cli {
namespace {

using core::Node;

void line(const std::string& name, const std::string& value) { std::printf("%-16s %s\n", name.c_str(), value.c_str()); }

std::string starter() {
  const auto started = launch::rank_from_environment();
  if (!started) return started.failure().message;
  if (!started.value()) return "no launcher; roux starts the processes";
  const launch::LaunchedRank& rank = *started.value();
  const core::RankInfo& place = rank.place;
  return (rank.launcher.empty() ? "RANK and WORLD_SIZE" : rank.launcher) + ": process " + std::to_string(place.rank) +
         " of " + std::to_string(place.size) + ", " + std::to_string(place.local_rank) + " of " +
         std::to_string(place.local_size) + " here; rendezvous at " + place.master_addr + ":" +
         std::to_string(place.master_port);
}

/// The `programs` that are in PATH.
std::string found(std::initializer_list<const char*> programs) {
  const char* path = std::getenv("PATH");
  std::string text;
  for (const char* program : programs) {
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (access((folder + "/" + program).c_str(), X_OK) != 0) continue;
      text += (text.empty() ? "" : ", ") + std::string(program);
      break;
    }
  }
  return text.empty() ? "none" : text;
}

std::optional<resolve::Recipe> recipe_here(Session& session, const RecipeFlags& flags) {
  if (!flags.path.empty()) return session.load(flags);
  core::Diagnostics diagnostics;
  recipe::ComposeOptions options = compose_options(flags, diagnostics);
  options.below = config_in_use(diagnostics);
  const auto any = std::make_shared<const core::Source>(core::Source{"no recipe", kAnyRecipe});
  auto recipe = resolve::load_recipe_text(any, options, registry::Registry::builtin(), diagnostics);
  session.show(diagnostics);
  if (!recipe) session.exit_code = core::kExitUsage;
  return recipe;
}

}  // namespace

void show_launch(Session& session, const RecipeFlags& flags) {
  const std::string file = config_path();
  std::error_code ignored;
  line("launch file", file.empty()                             ? "none (ROUX_CONFIG_FILE is empty)"
                      : std::filesystem::exists(file, ignored) ? file
                                                               : "none (" + file + ")");
  if (const auto recipe = recipe_here(session, flags)) {
    for (const Node::Entry& entry : recipe->at("launch").entries()) {
      const core::Location& place = entry.value.location();
      if (entry.value.is_null() || !place.known() || place.source->kind == core::Source::Kind::kDefault) continue;
      line("launch." + entry.key, core::to_json(entry.value, -1) + "  from " + place.text());
    }
    for (const char* key : {"device", "precision.mode"}) {
      const core::Location& place = recipe->place(key);
      if (!place.known() || place.source->kind == core::Source::Kind::kDefault) continue;
      line(key, core::to_json(recipe->at(key), -1) + "  from " + place.text());
    }
  }
  line("started by", starter());
  if (const char* job = std::getenv("SLURM_JOB_ID")) line("Slurm job", job);
  line("launchers", found({"ssh", "srun", "sbatch", "mpirun"}));
  line("cores", std::to_string(launch::own_cores_by_node().size()) + " for this process");
}

}  // namespace runner::cli
