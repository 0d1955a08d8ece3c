#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runner/artifact/retention.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/snapshot.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/store/run_writer.h"

namespace runner::train {

/// How a save handles a full disk.
struct FullDiskPolicy {
  bool wait = true;  ///< else fail at once
  double timeout_s = 0;
  std::function<bool()> give_up;  ///< polled while waiting: a signal was received, the run is over
};

/// One checkpoint on its way from memory to disk. Everything here may run on a background thread.
class SaveTask {
 public:
  SaveTask(checkpoint::Snapshot snapshot, checkpoint::SaveOptions options, artifact::RetentionPolicy retention,
           FullDiskPolicy full_disk, store::RunWriter& run, const core::Clock& clock);

  /// Writes and fsyncs; retries on a full disk as the policy says. Afterwards the state is no longer needed. RunError
  /// as checkpoint::save(): exit status 75 when the disk is full; nothing is left behind.
  void write();
  /// Reads back what write() wrote, commits, then rotates. Returns the folder. RunError as write(), and when the disk
  /// returns other data than written: no older checkpoint has been touched then.
  std::string commit();

  std::int64_t step() const { return options_.fields.step; }
  std::int64_t bytes() const { return bytes_; }
  bool waited_for_room() const { return waited_for_room_; }  ///< on a full disk
  const std::shared_ptr<artifact::Throttle>& throttle() const {
    return options_.throttle;
  }  ///< null when not throttled

 private:
  template <typename Attempt>
  void persist(Attempt attempt);
  bool wait_for_room(std::int64_t since_ns);
  core::RunError explained(const core::RunError& error) const;

  checkpoint::Snapshot snapshot_;
  std::unique_ptr<artifact::CheckpointWriter> draft_;
  checkpoint::SaveOptions options_;
  artifact::RetentionPolicy retention_;
  FullDiskPolicy full_disk_;
  store::RunWriter& run_;
  const core::Clock& clock_;
  std::int64_t bytes_;
  bool waited_for_room_ = false;
};

}  // namespace runner::train
