#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace runner::sweep {

/// A note of a worker that trains in its own process (`sweep.isolation: none`) and crashes in a training: the trial,
/// and how it ended. A resumed sweep then handles that trial by its policy instead of crashing again and again. SIGKILL
/// and a power cut leave no note.
///
/// One instance at a time: signal handlers belong to the whole process.
class CrashNote {
 public:
  /// `folder`: of the study. `told`: the line to print then.
  CrashNote(const std::string& folder, std::string told);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  /// From now on this trial, with `claims`, may end the process.
  void begin(std::int64_t trial, std::int64_t claims);
  /// And from now on none.
  void end();

  /// How that claim of the trial ended a worker: the exit status, or 128 + the signal. Nothing if it did not.
  static std::optional<int> status_of(const std::string& folder, std::int64_t trial, std::int64_t claims);
};

}  // namespace runner::sweep
