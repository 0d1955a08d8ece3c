#include "runner/cli/group/sweep_flags.h"

#include <set>
#include <utility>

#include "runner/cli/group/varied.h"
#include "runner/core/error.h"
#include "runner/recipe/compose.h"

namespace runner::cli {
namespace {

using recipe::Override;

/// Adds the sweep's flags to the changes of the recipe. False when the session has failed.
bool add_changes(Session& session, const SweepFlags& flags, recipe::ComposeOptions& options) {
  std::set<std::string> varied;
  for (const std::string& text : flags.varied) {
    const auto set = sweep_override(text);
    if (!set) {
      session.fail(set.failure().message, set.failure().hint);
      return false;
    }
    const std::string path = text.substr(0, text.find('='));
    if (!varied.insert(path).second) {
      session.fail(path + " is swept twice on the command line", "keep one of them: " + text);
      return false;
    }
    options.overrides.push_back({Override::Kind::kSet, set.value(), text});
  }
  const auto add = [&](const char* key, const char* flag, const std::string& value) {
    options.overrides.push_back(
        {Override::Kind::kSet, std::string("sweep.") + key + "=" + value, std::string(flag) + " " + value});
  };
  if (flags.n_trials) add("n_trials", "--n-trials", std::to_string(*flags.n_trials));
  if (flags.max_concurrent_trials) {
    add("max_concurrent_trials", "--max-concurrent-trials", std::to_string(*flags.max_concurrent_trials));
  }
  if (!flags.sampler.empty()) add("sampler", "--sampler", flags.sampler);
  return true;
}

}  // namespace

std::optional<sweep::Sweep> read_sweep(Session& session, const SweepFlags& flags) {
  auto options = session.changes(flags.recipe);
  if (!options || !add_changes(session, flags, *options)) return std::nullopt;
  core::Diagnostics diagnostics;
  auto open = recipe::compose_uninterpolated(flags.recipe.path, *options, diagnostics);
  std::optional<sweep::Sweep> sweep;
  session.hub = HubUse::kAll;
  if (open && !session.fetch(*open, diagnostics)) {
    session.show(diagnostics);
    return std::nullopt;
  }
  if (open) sweep = sweep::Sweep::read(flags.recipe.path, *std::move(open), diagnostics);
  session.show(diagnostics);
  if (!sweep) session.exit_code = core::kExitUsage;
  return sweep;
}

}  // namespace runner::cli
