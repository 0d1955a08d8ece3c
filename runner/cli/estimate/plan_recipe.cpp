#include "runner/cli/estimate/plan_recipe.h"

#include <memory>
#include <string>
#include <utility>

#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "generated/section/teacher.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/cli/hub/weight_headers.h"
#include "runner/cli/launch_ranks.h"
#include "runner/cli/local_device.h"
#include "runner/cli/tracking.h"
#include "runner/core/error.h"
#include "runner/hub/fetch.h"
#include "runner/hub/web_file.h"
#include "runner/resolve/consistency.h"
#include "runner/resolve/data_set_values.h"
#include "runner/resolve/hub_values.h"
#include "runner/resolve/recipe.h"

namespace runner::cli {
namespace {

/// The name of weights that are read from elsewhere and are not here; "" for none.
std::string unfetched_weights(const core::Node& path) {
  if (!path.is_string()) return "";
  const std::string pinned = resolve::hub_name(path), text = pinned.empty() ? path.as_string() : pinned;
  if (hub::is_web_file(text)) return pinned.empty() ? text : "";
  const auto name = hub::parse_name(text);
  const auto settings = hub::read_settings();
  if (!name || !settings || hub::is_fetched(name.value(), hub::Part::kAll, settings.value())) return "";
  return name.value().text();
}

/// `why`: what the server answered when it was asked for their headers.
void tell_unfetched(Session& session, const core::Node& path, const std::string& name,
                    const std::optional<core::Failure>& why) {
  core::Diagnostics diagnostics;
  if (why) {
    diagnostics.warning(path.location(),
                        "the weights are not here, so they are not compared with the model: " + why->message,
                        why->hint);
    return session.show(diagnostics);
  }
  diagnostics.notice(path.location(),
                     "the weights of " + name + " are not here yet, so they are not compared with the model",
                     "`roux fetch` with this recipe downloads them, and so does `roux run`");
  session.show(diagnostics);
}

/// The plan names a teacher that is still elsewhere, and looks no further.
void name_unfetched_teacher(Session& session, resolve::Recipe& recipe) {
  core::Node* path = recipe.root.at_path("teacher.init_from");
  const std::string name = path == nullptr ? "" : unfetched_weights(*path);
  if (name.empty()) return;
  tell_unfetched(session, *path, name, std::nullopt);
  *path = core::Node::string(name, path->location());
  recipe.teacher = sections::teacher::parse_config(*recipe.root.find("teacher"));
}

/// As replace_unfetched() has left it.
void take_headers(resolve::Recipe& recipe, const std::string& path) {
  core::Node* named = recipe.root.at_path("init_from.path");
  if (named == nullptr || !named->is_string()) return;
  *named = path.empty() ? core::Node::null(named->location()) : core::Node::string(path, named->location());
  recipe.init_from = sections::init_from::parse_config(*recipe.root.find("init_from"));
}

/// Weights that are still elsewhere are not fetched to plan with them, only their headers. Null where there are none,
/// or where a server does not send headers alone: the plan goes without.
std::unique_ptr<WeightHeaders> replace_unfetched(Session& session, resolve::Recipe& recipe) {
  core::Node* path = recipe.root.at_path("init_from.path");
  const std::string name = path == nullptr ? "" : unfetched_weights(*path);
  if (name.empty()) return nullptr;
  std::optional<core::Failure> why;
  auto headers = WeightHeaders::fetch(name, why);
  if (!headers) tell_unfetched(session, *path, name, why);
  take_headers(recipe, headers ? headers->path() : "");
  return headers;
}

/// A plan reads the data, and fetches no whole data sets, which may be large.
bool has_data_sets(Session& session, resolve::Recipe& recipe) {
  const core::Node* path = resolve::unlocated_data_set(recipe.root);
  if (path == nullptr) return true;
  core::Diagnostics diagnostics;
  diagnostics.error(path->location(), "a plan reads the data, and " + path->as_string() + " is not here",
                    "`roux fetch` with this recipe downloads it, and says before how large it is");
  session.show(diagnostics);
  session.exit_code = core::kExitUsage;
  return false;
}

core::Diagnostics with_names(const WeightHeaders& headers, const core::Diagnostics& diagnostics) {
  core::Diagnostics named;
  for (core::Diagnostic diagnostic : diagnostics.all()) {
    diagnostic.message = headers.with_names(diagnostic.message);
    diagnostic.hint = headers.with_names(diagnostic.hint);
    named.add(std::move(diagnostic));
  }
  return named;
}

/// The recipe of these flags with further changes, without a word; nothing where that is no valid one. `settled`: the
/// same without them, whose device, teacher and weights are taken.
std::optional<resolve::Recipe> changed_recipe(Session& session, const RecipeFlags& flags,
                                              const resolve::Recipe& settled, const engine::Changes& changes) {
  core::Diagnostics not_told;
  core::Diagnostics* const kept = std::exchange(session.kept, &not_told);
  const HubUse fetched = std::exchange(session.hub, HubUse::kCache);
  std::optional<resolve::Recipe> recipe;
  if (auto options = session.changes(flags)) {
    for (const std::string& change : changes) options->overrides.push_back({recipe::Override::Kind::kSet, change});
    recipe = session.load(flags.path, *options);
  }
  session.kept = kept;
  session.hub = fetched;
  session.exit_code = 0;
  if (!recipe) return std::nullopt;
  take_headers(*recipe, settled.init_from->path.value_or(""));
  const core::Node* here = settled.root.at_path("teacher.init_from");
  if (core::Node* path = recipe->root.at_path("teacher.init_from"); path != nullptr && here != nullptr) {
    *path = *here;
    recipe->teacher = sections::teacher::parse_config(*recipe->root.find("teacher"));
  }
  if (recipe->device == "auto") recipe->settle_device(settled.device);
  core::Diagnostics of_device;
  resolve::check_device(recipe->root, of_device);
  if (of_device.has_errors()) return std::nullopt;
  return recipe;
}

}  // namespace

std::optional<engine::Plan> plan_recipe(Session& session, const RecipeFlags& flags) {
  session.hub = HubUse::kPlan;
  auto recipe = session.load(flags);
  if (!recipe || !has_data_sets(session, *recipe)) return std::nullopt;
  warn_of_missing_servers(session, *recipe);
  const auto headers = replace_unfetched(session, *recipe);
  name_unfetched_teacher(session, *recipe);
  note_growing_batch(session, *recipe);
  note_unread_variables(session);
  const LocalDevice device = planned_device(session, *recipe, processes_per_machine(*recipe->launch));
  core::Diagnostics diagnostics;
  if (recipe->device == "auto") {
    recipe->settle_device(device.name);
    resolve::check_device(recipe->root, diagnostics);
    if (diagnostics.has_errors()) {
      session.show(diagnostics);
      session.exit_code = core::kExitUsage;
      return std::nullopt;
    }
  }
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return std::nullopt;
  const engine::PlanRequest request{device.gpu_memory_bytes, [&](const engine::Changes& changes) {
                                      return changed_recipe(session, flags, *recipe, changes);
                                    }};
  auto plan = engine->plan(*recipe, request, diagnostics);
  session.show(headers ? with_names(*headers, diagnostics) : diagnostics);
  if (!plan) session.exit_code = core::kExitUsage;
  if (plan && headers) plan->init_from = headers->with_names(plan->init_from);
  return plan;
}

}  // namespace runner::cli
