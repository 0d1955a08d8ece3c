#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/data/batch_schedule.h"

namespace runner::train {

/// Prefetches up to `batches_max` batches on its own threads and returns them in the schedule's order: a batch does not
/// depend on the number of threads or on which one read it. An error while reading a batch is thrown where that batch
/// is taken. The threads block signals.
class Prefetcher {
 public:
  struct Options {
    int workers = 1;
    std::int64_t batches_max = 2;  ///< read or being read, and not yet taken
  };
  using Position = BatchSchedule::Position;
  /// Makes a batch; called by any of the threads.
  using Job = std::function<void(components::TensorMap& batch)>;
  /// The job of the batch at a position, in the order of the positions and by one thread at a time.
  using Claim = std::function<Job(const Position& position, std::int64_t count)>;

  /// Starts reading at once. `claim_batch` and its jobs are used by the threads until the destructor returns, which
  /// waits for the batches being read. RunError when threads cannot be started.
  Prefetcher(Claim claim_batch, const BatchSchedule& schedule, Position start, const Options& options);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The batch of `count` samples at `position`, if it is the next one of the schedule; else false, without effect.
  /// Blocks until it has been read.
  bool take(const Position& position, std::int64_t count, components::TensorMap& batch);

 private:
  struct Slot {
    components::TensorMap batch;
    std::exception_ptr failure;
    bool ready = false;
  };

  void work();
  void end();
  /// The job of the next batch of the schedule and its number; false when told to stop.
  bool claim(std::int64_t& number, Job& job);
  bool wait_for_room(std::int64_t number);
  void deliver(std::int64_t number, Slot&& slot);
  Slot& slot_of(std::int64_t number) { return slots_[static_cast<std::size_t>(number) % slots_.size()]; }

  const BatchSchedule schedule_;

  std::mutex claiming_;  // held by the thread that claims, which may wait for room, and guards these three:
  Claim claim_batch_;
  Position to_claim_;
  std::int64_t claimed_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable room_, ready_;
  std::vector<Slot> slots_;  // a ring
  std::int64_t taken_ = 0;
  bool ending_ = false;

  Position to_take_;  // of the caller's thread
  std::vector<std::jthread> threads_;
};

}  // namespace runner::train
