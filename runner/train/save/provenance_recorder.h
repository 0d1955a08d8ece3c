#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "runner/artifact/provenance/provenance.h"
#include "runner/store/run_writer.h"

namespace runner::train {

/// Writes a run's provenance (capsule.json) and the diff of its code in the background: first without the data's
/// checksums, and again when every file was read, on a thread of the lowest priority, so that neither the start nor a
/// step waits. Errors are logged only: they must not fail the run.
class ProvenanceRecorder {
 public:
  /// `provenance.data` names set and path of each file; the rest is filled in. The files go into the folder of the
  /// run's branch and are its artifacts, at its first step. `code` may be invalid: not recorded. `light`: for a light
  /// run, which does not fsync; if nothing is left to collect, it is written at once, without a thread.
  ProvenanceRecorder(artifact::Provenance provenance, store::RunWriter& run, std::int64_t step,
                     std::shared_future<artifact::GitState> code, bool light = false);
  ~ProvenanceRecorder();  ///< stops reading; files not reached have no checksum
  ProvenanceRecorder(const ProvenanceRecorder&) = delete;
  ProvenanceRecorder& operator=(const ProvenanceRecorder&) = delete;

  /// Blocks until everything is read and written, or until the timeout; the wait for git is shorter.
  void finish(std::int64_t timeout_ms);

 private:
  void record();
  void read_and_write();
  bool knows_code() const;
  void take_code();
  void write() const;
  void write(const char* file, const std::string& content) const;
  void add_artefact(const char* kind, const char* file);

  artifact::Provenance provenance_;
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
