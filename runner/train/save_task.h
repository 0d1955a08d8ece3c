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

  /// Writes and commits; on a full disk tries again as the policy says. Returns the folder. RunError as
  /// checkpoint::save(): exit code 75 when there was no room, and nothing is left behind.
  std::string write();
  /// What has to happen before older checkpoints go: reads the committed one back from the disk, then rotates.
  /// RunError when the disk gives back something else than was written.
  void verify_and_rotate(const std::string& checkpoint);
  /// Lets go of the state, once it is written.
  void release() { snapshot_.reset(); }

  std::int64_t step() const { return options_.fields.step; }
  std::int64_t bytes() const { return bytes_; }

 private:
  bool wait_for_room(std::int64_t since_ns);

  std::unique_ptr<checkpoint::Snapshot> snapshot_;
  checkpoint::SaveOptions options_;
  artifact::RetentionPolicy retention_;
  FullDiskPolicy full_disk_;
  store::RunWriter& run_;
  const core::Clock& clock_;
  std::int64_t bytes_;
};

}  // namespace runner::train
