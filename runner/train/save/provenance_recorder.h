#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "runner/artifact/provenance.h"
#include "runner/store/run_writer.h"

namespace runner::train {

/// Writes a run's capsule, and the diff of its code, beside its work: at once without the data's checksums, and again
/// when every file was read, on a thread of the lowest priority, so that neither the start nor a step waits for it.
/// What goes wrong is a line in the log: a run is worth more than its record.
class ProvenanceRecorder {
 public:
  /// `capsule.data` names set and path of each file; the rest of them is filled in. The files go into the folder of the
  /// run's branch and are artefacts of it, at the step that it begins with. `code`: may be invalid, then nobody looked.
  /// `light`: of a light run, whose files may reach the disk later; where nothing is left to find out, it is written at
  /// once, without a thread.
  ProvenanceRecorder(artifact::Provenance capsule, store::RunWriter& run, std::int64_t step,
                     std::shared_future<artifact::GitState> code, bool light = false);
  ~ProvenanceRecorder();  ///< stops reading; files not reached stay without a checksum
  ProvenanceRecorder(const ProvenanceRecorder&) = delete;
  ProvenanceRecorder& operator=(const ProvenanceRecorder&) = delete;

  /// Blocks until everything is read and written, or so long; git is not waited for as long as that.
  void finish(std::int64_t patience_ms);

 private:
  void record();
  void read_and_write();
  bool knows_code() const;
  void take_code();
  void write() const;
  void write(const char* file, const std::string& content) const;
  void add_artefact(const char* kind, const char* file);

  artifact::Provenance capsule_;
  store::RunWriter& run_;
  const std::int64_t step_;
  const std::string folder_;
  const std::shared_future<artifact::GitState> code_;
  const bool light_;
  std::atomic<bool> stop_ = false, ending_ = false;
  std::mutex mutex_;
  std::condition_variable done_;
  bool complete_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace runner::train
