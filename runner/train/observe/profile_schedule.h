#pragma once

#include <cstdint>

namespace runner::train {

/// Action for a step: kSave is the last recorded one of its cycle.
enum class ProfileAction { kNone, kWarmup, kRecord, kSave };

/// Steps in cycles of wait, warm-up and recording; PyTorch's torch.profiler.schedule.
struct ProfileSchedule {
  std::int64_t skip_first = 0, wait = 0, warmup = 0, active = 1;
  std::int64_t repeat = 0;  ///< cycles; 0: unlimited

  /// `step`: counted from 0 at the start of the process.
  ProfileAction action(std::int64_t step) const {
    if (step < skip_first) return ProfileAction::kNone;
    step -= skip_first;
    const std::int64_t cycle = wait + warmup + active;
    if (repeat > 0 && step >= repeat * cycle) return ProfileAction::kNone;
    const std::int64_t at = step % cycle;
    if (at < wait) return ProfileAction::kNone;
    if (at < wait + warmup) return ProfileAction::kWarmup;
    return at < cycle - 1 ? ProfileAction::kRecord : ProfileAction::kSave;
  }
};

}  // namespace runner::train
