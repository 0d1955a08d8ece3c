#include "runner/sweep/limits.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runner/core/node.h"
#include "runner/core/units.h"
#include "runner/sweep/standing.h"

namespace runner::sweep {
namespace {

std::string number(double value) { return core::Node::floating(value).scalar_text(); }

/// Variants that have ended since the best one was improved on.
std::int64_t without_improvement(const Sweep& sweep, const std::vector<Variant>& variants,
                                 const std::vector<Trial>& trials) {
  std::vector<std::pair<std::int64_t, VariantStanding>> ended;  // in the order in which they were written down
  std::vector<std::int64_t> written(variants.size());
  for (const Trial& trial : trials) {
    std::int64_t& last = written[static_cast<std::size_t>(trial.variant)];
    last = std::max(last, trial.changed);
  }
  for (const VariantStanding& standing : standings_of(variants, trials)) {
    if (standing.state == TrialState::kWaiting || standing.state == TrialState::kRunning) continue;
    ended.emplace_back(written[static_cast<std::size_t>(standing.variant)], standing);
  }
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::optional<double> best;
  std::int64_t since = 0;
  for (const auto& [when, standing] : ended) {
    ++since;
    if (standing.state != TrialState::kComplete || !standing.value) continue;
    const double value = sweep.signed_value(*standing.value);
    if (best && value >= *best - sweep.config().stop.min_delta) continue;
    best = value;
    since = 0;
  }
  return since;
}

}  // namespace

bool has_limits(const Sweep& sweep) {
  const auto& stop = sweep.config().stop;
  return stop.target || stop.max_time || stop.max_steps || stop.max_samples || stop.max_tokens || stop.patience ||
         stop.regret_bound;
}

std::string reached_limit(const Sweep& sweep, const std::vector<Variant>& variants, const std::vector<Trial>& trials,
                          std::int64_t worked_ms, RegretWatch& regret) {
  const auto& stop = sweep.config().stop;
  if (stop.target) {
    const auto best = best_of(sweep, standings_of(variants, trials));
    if (best && sweep.signed_value(*best->value) <= sweep.signed_value(*stop.target)) {
      return "target " + number(*stop.target) + " is reached by variant " + std::to_string(best->variant);
    }
  }
  if (stop.max_time && static_cast<double>(worked_ms) >= *stop.max_time * 1000) {
    return "max_time " + core::format_duration(*stop.max_time) + " is over";
  }
  Spent spent;
  for (const Trial& trial : trials) {
    spent.steps += trial.spent.steps;
    spent.samples += trial.spent.samples;
    spent.tokens += trial.spent.tokens;
  }
  const auto used_up = [](const char* name, std::int64_t used, double limit) {
    return std::string(name) + " " + std::to_string(std::llround(limit)) + " is used up: " + std::to_string(used);
  };
  if (stop.max_steps && spent.steps >= *stop.max_steps) {
    return used_up("max_steps", spent.steps, static_cast<double>(*stop.max_steps));
  }
  if (stop.max_samples && static_cast<double>(spent.samples) >= *stop.max_samples) {
    return used_up("max_samples", spent.samples, *stop.max_samples);
  }
  if (stop.max_tokens && static_cast<double>(spent.tokens) >= *stop.max_tokens) {
    return used_up("max_tokens", spent.tokens, *stop.max_tokens);
  }
  if (stop.patience && without_improvement(sweep, variants, trials) >= *stop.patience) {
    return "patience " + std::to_string(*stop.patience) + " is at its end: no better variant since";
  }
  if (stop.regret_bound) {
    const Regret& now = regret.look_at(variants, trials);
    if (now.is_small()) {
      return "regret_bound is down to " + short_number(*now.bound) + ", below " + short_number(*now.threshold) + ": " +
             "no variant is likely to be better by more";
    }
  }
  return "";
}

}  // namespace runner::sweep
