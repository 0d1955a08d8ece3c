#include "runner/sweep/spec/population.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "components/sampler/math/counter_rng.h"
#include "components/sampler/math/grid_points.h"
#include "generated/section/sweep.h"
#include "runner/resolve/recipe.h"

namespace runner::sweep {
namespace {

using components::sampler::CounterRng;
using components::sampler::Observation;

constexpr std::uint64_t kPurpose = 2;  // draws of its own beside those of the sampler and of the preflight
constexpr int kAttemptsMax = 100;      // at values that the constraints allow

// Keys with unknown effects, or that may invalidate the saved state.
constexpr const char* kKept[] = {"model", "data", "precision", "vars"};

bool is_kept(const SpacePart& part) {
  const auto is_one = [](const std::string& path) {
    const std::string section = path.substr(0, path.find_first_of(".["));
    return std::any_of(std::begin(kKept), std::end(kKept), [&section](const char* kept) { return section == kept; }) ||
           path.ends_with(".type") || path.find('.') == std::string::npos;
  };
  const auto has_blocks = [](const std::vector<core::Node>& values) {
    return std::any_of(values.begin(), values.end(), [](const core::Node& value) { return value.is_mapping(); });
  };
  return std::any_of(part.paths.begin(), part.paths.end(), is_one) ||
         std::any_of(part.choices.begin(), part.choices.end(), has_blocks);
}

/// The value of the dimension that is nearest to a number.
double nearest(const Dimension& dimension, double value) {
  if (dimension.kind != Dimension::Kind::kNormal) value = std::clamp(value, dimension.min, dimension.max);
  if (dimension.step == 0) return dimension.kind == Dimension::Kind::kInteger ? std::round(value) : value;
  if (dimension.count() > 0) {
    const auto index = static_cast<std::int64_t>(std::llround((value - dimension.min) / dimension.step));
    return dimension.nth(std::clamp<std::int64_t>(index, 0, dimension.count() - 1));
  }
  return std::round(value / dimension.step) * dimension.step;
}

/// A value times a factor, or the next one in that direction where it would stay what it is.
double moved(const Dimension& dimension, double value, double factor) {
  const double direction = factor < 1 ? -1 : 1;
  if (dimension.kind == Dimension::Kind::kChoice) {
    return std::clamp(value + direction, 0.0, static_cast<double>(dimension.choices - 1));
  }
  const double scaled = nearest(dimension, value * factor);
  if (scaled != value) return scaled;
  const double step = dimension.step != 0 ? dimension.step : dimension.kind == Dimension::Kind::kInteger ? 1 : 0;
  return nearest(dimension, value + direction * step);
}

bool has_ended(const Observation& observation) { return observation.state != Observation::State::kOpen; }

bool counts(const Observation& observation) {
  return observation.state == Observation::State::kComplete && !observation.values.empty() &&
         std::isfinite(observation.values.front());
}

}  // namespace

std::shared_ptr<const Population> Population::read(const resolve::Recipe& recipe,
                                                   std::shared_ptr<const RecipeSpace> space, std::uint64_t seed,
                                                   core::Diagnostics& diagnostics) {
  const auto population = std::shared_ptr<Population>(new Population());
  const core::Node& section = recipe.at("sweep.population");
  population->config_ = *recipe.sweep->population;
  population->space_ = std::move(space);
  population->seed_ = seed;
  for (const char* other : {"max_epochs", "max_tokens", "max_time"}) {
    const core::Node& limit = recipe.at(std::string("training.") + other);
    if (limit.is_null()) continue;
    diagnostics.error(
        limit.location(),
        std::string("a population is trained by steps, but training.") + other + " may end a member before",
        "remove it; training.max_steps is the limit");
  }
  const core::Node& steps = recipe.at("training.max_steps");
  if (steps.is_null()) {
    diagnostics.error(section.location(), "a population trains its members to training.max_steps, which is not set",
                      "add training.max_steps");
    return nullptr;
  }
  population->total_steps_ = steps.as_integer();
  const std::int64_t interval = population->config_.interval;
  population->generations_ = (population->total_steps_ + interval - 1) / interval;
  if (!population->find_explored(recipe, diagnostics) || diagnostics.has_errors()) return nullptr;
  return population;
}

bool Population::find_explored(const resolve::Recipe& recipe, core::Diagnostics& diagnostics) {
  for (const SpacePart& part : space_->parts()) explores_.push_back(!config_.explore && !is_kept(part));
  if (config_.explore) {
    for (const core::Node& name : recipe.at("sweep.population.explore").items()) {
      bool found = false;
      for (std::size_t i = 0; i < explores_.size(); ++i) {
        const auto& paths = space_->parts()[i].paths;
        if (std::find(paths.begin(), paths.end(), name.as_string()) == paths.end()) continue;
        explores_[i] = found = true;
      }
      if (!found) diagnostics.error(name.location(), "the sweep does not vary " + name.as_string());
    }
    return !diagnostics.has_errors();
  }
  if (std::find(explores_.begin(), explores_.end(), true) != explores_.end()) return true;
  diagnostics.error(recipe.at("sweep.population").location(),
                    "none of the swept parameters can be changed mid-training: the saved state may not fit",
                    "sweep optimizer.lr, or list the parameters that may change in explore");
  return false;
}

std::int64_t Population::end_of_generation(std::int64_t generation) const {
  return std::min(total_steps_, (generation + 1) * config_.interval);
}

bool Population::waits(const std::vector<Observation>& observations) const {
  const auto number = static_cast<std::int64_t>(observations.size());
  if (number < size() || number >= variants()) return false;
  const auto begin = observations.begin() + (generation_of(number) - 1) * size();
  return !std::all_of(begin, begin + size(), has_ended);
}

std::optional<Segment> Population::next(const std::vector<Observation>& observations) const {
  const auto number = static_cast<std::int64_t>(observations.size());
  if (number >= variants()) return std::nullopt;
  const std::int64_t generation = generation_of(number), first = (generation - 1) * size();
  std::vector<std::int64_t> order;  // from best to worst; failed ones last
  for (std::int64_t i = 0; i < size(); ++i) order.push_back(first + i);
  const auto at = [&observations](std::int64_t variant) -> const Observation& {
    return observations[static_cast<std::size_t>(variant)];
  };
  std::stable_sort(order.begin(), order.end(), [&at](std::int64_t a, std::int64_t b) {
    if (!counts(at(a)) || !counts(at(b))) return counts(at(a)) && !counts(at(b));
    return at(a).values.front() < at(b).values.front();
  });
  const std::int64_t alive = std::count_if(order.begin(), order.end(), [&](std::int64_t v) { return counts(at(v)); });
  if (alive == 0) return std::nullopt;
  const std::int64_t replaced = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::floor(config_.quantile_fraction * static_cast<double>(size()))));
  const std::int64_t own = number - size();
  const std::int64_t rank = std::find(order.begin(), order.end(), own) - order.begin();
  Segment segment{at(own).point, own, end_of_generation(generation)};
  if (rank < size() - replaced && counts(at(own))) return segment;
  CounterRng rng(seed_, number, kPurpose);
  const std::int64_t models = std::min(replaced, alive);
  const auto drawn = static_cast<std::int64_t>(rng.uniform() * static_cast<double>(models));
  segment.parent = order[static_cast<std::size_t>(drawn)];
  segment.point = explored(at(segment.parent).point, rng.bits(), number);
  return segment;
}

Point Population::explored(const Point& point, std::uint64_t seed, std::int64_t variant) const {
  const std::vector<Dimension>& dimensions = space_->dimensions();
  CounterRng rng(seed, variant, kPurpose);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Point changed = components::sampler::make_point(*space_, [&](std::size_t i) {
      if (!explores_[i] && !std::isnan(point[i])) return point[i];
      const double drawn = rng.uniform(), which = rng.uniform();
      if (std::isnan(point[i]) || drawn < config_.resample) return dimensions[i].quantile(which);
      const auto factor = static_cast<std::size_t>(which * static_cast<double>(config_.factors.size()));
      return moved(dimensions[i], point[i], config_.factors[factor]);
    });
    if (space_->allows(changed)) return changed;
  }
  return point;
}

}  // namespace runner::sweep
