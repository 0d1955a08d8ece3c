#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runner/artifact/retention.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/snapshot.h"
#include "runner/core/clock.h"
#include "runner/store/run_writer.h"

namespace runner::train {

/// How a save meets a disk that is full.
struct FullDiskPolicy {
  bool wait = true;  ///< else the first refusal is the last
  double timeout_s = 0;
  std::function<bool()> give_up;  ///< asked while waiting: a signal came, the run is over
};

/// One checkpoint on its way from memory to the disk. Everything here may run on a thread beside the training.
class SaveTask {
 public:
  SaveTask(checkpoint::Snapshot snapshot, checkpoint::SaveOptions options, artifact::RetentionPolicy retention,
           FullDiskPolicy full_disk, store::RunWriter& run, const core::Clock& clock);

  /// Writes and fsyncs; on a full disk tries again as the policy says. Afterwards the state is no longer needed.
  /// RunError as checkpoint::save(): exit code 75 when there was no room, and nothing is left behind.
  void write();
  /// Reads back from the disk what write() wrote, commits, then rotates. Returns the folder. RunError as write(), and
  /// when the disk gives back something else than was written: nothing older has been touched then.
  std::string commit();

  std::int64_t step() const { return options_.fields.step; }
  std::int64_t bytes() const { return bytes_; }
  const std::shared_ptr<artifact::Throttle>& pace() const { return options_.pace; }  ///< null when it never rests

 private:
  template <typename Attempt>
  void persist(Attempt attempt);
  bool wait_for_room(std::int64_t since_ns);

  checkpoint::Snapshot snapshot_;
  std::unique_ptr<artifact::CheckpointWriter> draft_;
  checkpoint::SaveOptions options_;
  artifact::RetentionPolicy retention_;
  FullDiskPolicy full_disk_;
  store::RunWriter& run_;
  const core::Clock& clock_;
  std::int64_t bytes_;
};

}  // namespace runner::train
