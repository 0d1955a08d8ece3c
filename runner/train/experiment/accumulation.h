#pragma once

#include <cstdint>

namespace runner::train {

/// Decides which micro-batches end a window (the optimizer steps after them). Accelerate's GradientState: a window
/// holds `steps` micro-batches; with `sync_with_dataloader` the end of an epoch ends a window early.
class Accumulation {
 public:
  Accumulation(std::int64_t steps, bool sync_with_dataloader)
      : steps_(steps), sync_with_dataloader_(sync_with_dataloader) {}

  /// Call once per micro-batch; true when it completes the window.
  bool advance(bool epoch_ended) {
    const bool complete = ++in_window_ >= steps_ || (sync_with_dataloader_ && epoch_ended);
    if (complete) in_window_ = 0;
    return complete;
  }
  std::int64_t steps() const { return steps_; }

 private:
  std::int64_t steps_;
  bool sync_with_dataloader_;
  std::int64_t in_window_ = 0;
};

/// Counts the steps of the schedule. By default it advances once per optimizer step.
///
/// Source  Accelerate's AcceleratedScheduler, whose `scheduler.step()` is called after every micro-batch.
class ScheduleClock {
 public:
  struct Options {
    bool step_with_optimizer = true;  ///< false: it advances after every micro-batch
    bool step_per_process = false;    ///< true: by the number of processes each time (Accelerate without split_batches)
    int num_processes = 1;
  };

  explicit ScheduleClock(Options options) : options_(options) {}

  /// `window_complete`: the optimizer was due; `optimizer_moved`: it stepped (an overflow skips the step).
  void after_micro_batch(bool window_complete, bool optimizer_moved) {
    if (!options_.step_with_optimizer) {
      move(1);
    } else if (window_complete && optimizer_moved) {
      move(options_.step_per_process ? options_.num_processes : 1);
    }
  }
  std::int64_t step() const { return step_; }
  /// torch's `_step_count`: 1 after construction.
  std::int64_t calls() const { return calls_; }
  void restore(std::int64_t step, std::int64_t calls) {
    step_ = step;
    calls_ = calls;
  }

 private:
  void move(std::int64_t by) {
    step_ += by;
    calls_ += by;
  }

  Options options_;
  std::int64_t step_ = 0;
  std::int64_t calls_ = 1;
};

}  // namespace runner::train
