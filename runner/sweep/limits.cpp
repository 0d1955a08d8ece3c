#include "runner/sweep/limits.h"

#include <cmath>

#include "runner/core/node.h"
#include "runner/core/units.h"

namespace runner::sweep {
namespace {

std::string number(double value) { return core::Node::floating(value).scalar_text(); }

}  // namespace

bool has_limits(const Sweep& sweep) {
  const auto& stop = sweep.config().stop;
  return stop.target || stop.max_time || stop.max_steps || stop.max_samples || stop.max_tokens || stop.patience ||
         stop.regret_bound;
}

std::string reached_limit(const Sweep& sweep, Study& study, const StudyCounters& counters, std::int64_t worked_ms,
                          RegretMonitor& regret) {
  const auto& stop = sweep.config().stop;
  if (stop.target) {
    const auto front = counters.front();
    if (!front.empty() && sweep.signed_value(*front.front().value) <= sweep.signed_value(*stop.target)) {
      return "target " + number(*stop.target) + " is reached by variant " + std::to_string(front.front().variant);
    }
  }
  if (stop.max_time && static_cast<double>(worked_ms) >= *stop.max_time * 1000) {
    return "max_time " + core::format_duration(*stop.max_time) + " is over";
  }
  const Spent& spent = counters.spent();
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
  if (stop.patience && counters.without_improvement() >= *stop.patience) {
    return "patience " + std::to_string(*stop.patience) + " is used up: no better variant since";
  }
  if (stop.regret_bound) {
    const Regret& now = regret.look_at(study.variants(), study.trials());
    if (now.is_small()) {
      return "regret_bound is down to " + short_number(*now.bound) + ", below " + short_number(*now.threshold) + ": " +
             "no variant is likely to improve by more";
    }
  }
  return "";
}

}  // namespace runner::sweep
