#include "runner/train/experiment/build/schedule_check.h"

#include <algorithm>
#include <string>

#include "runner/core/text/text.h"

namespace runner::train {
namespace {

constexpr std::int64_t kLooks = 10'000;  // at steps, evenly spaced

std::string step_text(std::int64_t step, std::int64_t steps) {
  return std::to_string(step) + " of " + std::to_string(steps);
}

}  // namespace

void check_schedule(const components::lr_scheduler::Scheduler& scheduler, std::int64_t steps, std::int64_t unit,
                    const core::Location& location, core::Diagnostics& diagnostics) {
  if (steps < 2) return;
  const auto factor = [&](std::int64_t step) { return scheduler.factor(step * unit); };
  const double last = factor(steps - 1);
  if (last == 0.0) {
    // The first of the steps at the end that have no rate; a schedule may touch 0 before.
    std::int64_t end = steps - 1;
    for (std::int64_t stride = std::max<std::int64_t>(1, steps / kLooks); stride > 0; stride /= 2) {
      while (end - stride >= 0 && factor(end - stride) == 0.0) end -= stride;
    }
    diagnostics.warning(location,
                        "the learning rate is 0 from step " + step_text(end, steps) + ", where the schedule has ended",
                        "remove total_steps, or give the schedule a rate to end with, such as min_lr_ratio");
    return;
  }
  const std::int64_t stride = std::max<std::int64_t>(1, (steps - 1) / kLooks);
  double before = factor(0);
  bool rises = before < last;
  for (std::int64_t step = stride; rises && step < steps; step += stride) {
    const double now = factor(step);
    rises = now >= before;
    before = now;
  }
  // A rate that stays where it is now has arrived.
  const double later = factor(2 * steps);
  if (!rises || later <= last * 1.001 || factor(steps - 2) == last) return;
  diagnostics.warning(location,
                      "the learning rate still rises when training ends: step " + step_text(steps, steps) + " has " +
                          core::short_number(last, 2) + " of it",
                      "a warm-up of 1-10 % of the steps is common");
}

}  // namespace runner::train
