#pragma once

#include <cstdint>
#include <optional>

namespace runner::train {

/// Whether the metrics of a step are recorded: of the first and of every `logging_steps`-th; where that is unset, of
/// each of the first 50, which may be all that a run has, and then of every tenth. By the step's number alone, so that
/// a resumed run has the same points.
inline bool is_logged(std::int64_t step, const std::optional<std::int64_t>& logging_steps) {
  constexpr std::int64_t kFirstSteps = 50, kUsualInterval = 10;
  const std::int64_t all_until = logging_steps ? 1 : kFirstSteps;
  return step <= all_until || step % logging_steps.value_or(kUsualInterval) == 0;
}

}  // namespace runner::train
