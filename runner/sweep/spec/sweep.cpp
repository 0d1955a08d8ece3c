#include "runner/sweep/spec/sweep.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "components/sampler/math/grid_points.h"
#include "generated/section/sampler_common.h"
#include "generated/section/sweep.h"
#include "generated/section/training.h"
#include "runner/core/error.h"
#include "runner/recipe/override.h"
#include "runner/registry/validate.h"
#include "runner/resolve/load.h"
#include "runner/sweep/spec/regret_check.h"
#include "runner/sweep/spec/store_address.h"

namespace runner::sweep {
namespace {

using core::Node;

/// The sampler's, or the default of the sweep's space.
Node sampler_block(const Sweep::Config& config, const RecipeSpace& space) {
  if (config.sampler) return *config.sampler;
  core::Diagnostics none;
  const char* type =
      components::sampler::default_type(space, config.n_trials.has_value(), config.population.has_value());
  return registry::validate_component(Node::string(type), "sampler", "sweep.sampler", registry::Registry::builtin(),
                                      none);
}

std::uint64_t seed_of(const Node& sampler, const resolve::Recipe& recipe) {
  const auto own = sections::sampler_common::parse_config(sampler).seed;
  return static_cast<std::uint64_t>(own ? *own : recipe.seed);
}

std::vector<Metric> objectives_of(const Sweep::Config& config) {
  using sections::sweep::Goal;
  using sections::sweep::Take;
  std::vector<Metric> objectives;
  for (const auto& one : config.objectives) {
    objectives.push_back({one.name, one.goal == Goal::kMaximize, one.take == Take::kBest});
  }
  if (!objectives.empty()) return objectives;
  return {{*config.metric.name, config.metric.goal == Goal::kMaximize, config.metric.take == Take::kBest}};
}

std::shared_ptr<components::sampler::Sampler> build_sampler(const resolve::Recipe& recipe, const Sweep::Config& config,
                                                            std::shared_ptr<const RecipeSpace> space) {
  const Node block = sampler_block(config, *space);
  return components::sampler::build(block, {std::move(space), seed_of(block, recipe), objectives_of(config).size()});
}

/// What the sampler asks of the space, and who says when it is enough.
void check_sampler(const resolve::Recipe& recipe, const Sweep::Config& config,
                   const std::shared_ptr<const RecipeSpace>& space, core::Diagnostics& diagnostics) {
  std::shared_ptr<components::sampler::Sampler> sampler;
  try {
    sampler = build_sampler(recipe, config, space);
  } catch (const core::RunError&) {
    return;  // build_choosers() tells it
  }
  sampler->check(sampler_block(config, *space), diagnostics);
  if (config.n_trials || config.population || sampler->is_finite()) return;
  diagnostics.error(recipe.at("sweep").location(), "the number of variants to try is not set",
                    components::sampler::is_finite(*space)
                        ? "add --n-trials 20, or sweep.n_trials; sampler: grid tries all"
                        : "add --n-trials 20, or sweep.n_trials");
}

/// Null where there is no sweep, or a wrong one.
std::shared_ptr<const RecipeSpace> read_space(const resolve::Recipe& recipe, const recipe::Composed& open,
                                              core::Diagnostics& diagnostics) {
  const Node* section = recipe.root.find("sweep");
  if (section == nullptr || !section->is_mapping()) return nullptr;
  auto space = RecipeSpace::read(recipe, open, diagnostics);
  if (!diagnostics.has_errors()) {
    const Sweep::Config& config = *recipe.sweep;
    check_sampler(recipe, config, space, diagnostics);
    check_regret_bound(recipe, config, *space, diagnostics);
    const auto address = config.store ? read_store_address(*config.store) : StoreAddress{};
    if (!address) {
      diagnostics.error(recipe.at("sweep.store").location(), address.failure().message, address.failure().hint);
    } else if (!address.value().sweep.empty()) {
      diagnostics.error(recipe.at("sweep.store").location(), "a new sweep generates its own name",
                        "remove #" + address.value().sweep + ", and join with: roux sweep work " + *config.store);
    }
    if (config.population && !diagnostics.has_errors()) Population::read(recipe, space, 0, diagnostics);
  }
  diagnostics.sort();
  return space;
}

/// Steps of a trial; nothing where the recipe limits it otherwise.
std::optional<std::int64_t> steps_of_a_trial(const resolve::Recipe& recipe) { return recipe.training->max_steps; }

/// Whether `training.max_steps` is not the same in all variants. `open` still has its `${...}`.
bool may_vary_steps(const Node& open, const RecipeSpace& space) {
  const Node* training = open.find("training");
  const Node* steps = training != nullptr && training->is_mapping() ? training->find("max_steps") : nullptr;
  if (steps != nullptr ? steps->is_string() : training != nullptr && training->is_string()) return true;
  const auto sets_them = [](const std::string& path) { return path == "training" || path == "training.max_steps"; };
  return std::any_of(space.parts().begin(), space.parts().end(), [&](const SpacePart& part) {
    return std::any_of(part.paths.begin(), part.paths.end(), sets_them);
  });
}

/// Null without pruning.
std::shared_ptr<components::pruner::Pruner> build_pruner(const Sweep::Config& config, const resolve::Recipe& recipe) {
  if (!config.pruner) return nullptr;
  return components::pruner::build(*config.pruner, {objectives_of(config).front().maximize, steps_of_a_trial(recipe)});
}

/// The sampler and the pruner; the latter may be null.
struct Choosers {
  std::shared_ptr<components::sampler::Sampler> sampler;
  std::shared_ptr<components::pruner::Pruner> pruner;
};

/// Nothing when one of them does not fit the rest of the recipe, which is reported at its location.
std::optional<Choosers> build_choosers(const resolve::Recipe& recipe, std::shared_ptr<const RecipeSpace> space,
                                       core::Diagnostics& diagnostics) {
  const Sweep::Config& config = *recipe.sweep;
  const char* part = config.sampler ? "sweep.sampler" : "sweep";
  Choosers choosers;
  try {
    choosers.sampler = build_sampler(recipe, config, std::move(space));
    part = "sweep.pruner";
    choosers.pruner = build_pruner(config, recipe);
  } catch (const core::RunError& error) {
    diagnostics.error(recipe.at(part).location(), error.what(), error.hint());
    return std::nullopt;
  }
  return choosers;
}

}  // namespace

std::optional<Sweep> Sweep::read(const std::string& recipe_path, recipe::Composed open,
                                 core::Diagnostics& diagnostics) {
  Sweep sweep;
  sweep.open_ = open;
  sweep.base_ =
      resolve::interpolate_and_settle(recipe_path, std::move(open), registry::Registry::builtin(), diagnostics);
  sweep.space_ = read_space(sweep.base_, sweep.open_, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  if (sweep.space_ == nullptr) {
    diagnostics.error(
        sweep.base_.root.location(), "the recipe has no sweep",
        "add sweep: {parameters: ...}, or give the parameters on the command line: optimizer.lr=1e-4,1e-3");
    return std::nullopt;
  }
  sweep.objectives_ = objectives_of(sweep.config());
  sweep.varies_steps_ = may_vary_steps(sweep.open_.root, *sweep.space_);
  auto choosers = build_choosers(sweep.base_, sweep.space_, diagnostics);
  if (!choosers) return std::nullopt;
  sweep.sampler_ = std::move(choosers->sampler);
  sweep.pruner_ = std::move(choosers->pruner);
  if (sweep.config().population) {
    sweep.population_ = Population::read(
        sweep.base_, sweep.space_, seed_of(sampler_block(sweep.config(), *sweep.space_), sweep.base_), diagnostics);
    if (sweep.population_ == nullptr) return std::nullopt;
  }
  return sweep;
}

std::vector<double> Sweep::signed_values(double value, const std::vector<double>& others) const {
  std::vector<double> values = {signed_value(value)};
  const std::size_t count = std::min(others.size(), objectives_.size() - 1);
  for (std::size_t i = 0; i < count; ++i) values.push_back(objectives_[i + 1].signed_value(others[i]));
  return values;
}

std::optional<std::int64_t> Sweep::total_steps(const Point& point) const {
  if (!varies_steps_) return steps_of_a_trial(base_);
  core::Diagnostics told_when_it_is_trained;
  const auto recipe = variant(point, told_when_it_is_trained);
  return recipe ? steps_of_a_trial(*recipe) : std::nullopt;
}

std::shared_ptr<components::pruner::Pruner> Sweep::new_pruner() const { return build_pruner(config(), base_); }

std::string Sweep::sampler_type() const { return sampler_block(config(), *space_).find("type")->as_string(); }

std::optional<std::int64_t> Sweep::variants_to_come() const {
  if (population_ != nullptr) return population_->variants();
  const auto count = sampler_->count(config().n_trials.value_or(std::numeric_limits<std::int64_t>::max()));
  return count ? count : config().n_trials;
}

std::string Sweep::identity() const { return core::to_json(open_.root, -1); }

std::string Sweep::identity_of_trials() const {
  Node root = open_.root;
  if (Node* sweep = root.find("sweep")) {
    for (const char* key : {"n_trials", "max_concurrent_trials", "isolation", "failures", "checkpoints", "stop",
                            "store", "worker_timeout"}) {
      sweep->erase(key);
    }
  }
  return core::to_json(root, -1);
}

std::optional<resolve::Recipe> Sweep::with(std::vector<Assignment> changes, const std::string& recipe_dir,
                                           core::Diagnostics& diagnostics) const {
  recipe::Composed composed = open_;
  if (!recipe_dir.empty()) composed.recipe_dir = recipe_dir;
  composed.root.erase("sweep");
  for (Assignment& change : changes)
    recipe::set_value(composed.root, change.path, std::move(change.value), diagnostics);
  auto recipe =
      resolve::interpolate_and_settle(base_.path, std::move(composed), registry::Registry::builtin(), diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return recipe;
}

std::optional<resolve::Recipe> Sweep::variant(const Point& point, core::Diagnostics& diagnostics) const {
  return with(space_->assignments(point), "", diagnostics);
}

/// A part of a training ends at its step and saves there; rates are those of the whole training.
void Sweep::limit_steps(const TrialSettings& settings, std::vector<Assignment>& changes,
                        core::Diagnostics& diagnostics) const {
  const auto whole = with(changes, settings.recipe_dir, diagnostics);
  if (!whole) return;
  changes.push_back({"lr_scheduler", whole->at("lr_scheduler")});  // its length was settled with that of the training
  changes.push_back({"training.max_steps", Node::integer(settings.until)});
  changes.push_back({"checkpoint.save_at_end", Node::boolean(true)});
}

std::optional<resolve::Recipe> Sweep::trial(const Point& point, const TrialSettings& settings,
                                            core::Diagnostics& diagnostics) const {
  std::vector<Assignment> changes = space_->assignments(point);
  changes.push_back({"run_name", Node::string(settings.run_name)});
  if (!settings.output_dir.empty()) changes.push_back({"output_dir", Node::string(settings.output_dir)});
  if (settings.replicate > 0) {
    changes.push_back({"seed", Node::integer(base_.seed + settings.replicate)});
  }
  if (settings.threads > 0) {
    changes.push_back({"launch.num_cpu_threads_per_process", Node::integer(settings.threads)});
  }
  if (settings.shrink) changes.push_back({"training.auto_micro_batch", Node::string("halve")});
  if (settings.until > 0) limit_steps(settings, changes, diagnostics);
  return with(std::move(changes), settings.recipe_dir, diagnostics);
}

void check_sweep(const resolve::Recipe& recipe, const recipe::Composed& open, core::Diagnostics& diagnostics) {
  auto space = read_space(recipe, open, diagnostics);
  if (space != nullptr && !diagnostics.has_errors()) build_choosers(recipe, std::move(space), diagnostics);
}

}  // namespace runner::sweep
