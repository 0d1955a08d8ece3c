#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace runner::sweep {

/// What a worker that trains in its own process (`sweep.isolation: none`) leaves behind where a training takes it
/// along: which trial that was, and how it ended. So whoever goes on with the sweep handles that trial by its policy,
/// where it would crash again and again. SIGKILL and a power cut cannot be handled and leave nothing.
///
/// One of them at a time: what a signal does belongs to the whole process.
class CrashNote {
 public:
  /// `folder`: of the study. `told`: the line that a person is to see then.
  CrashNote(const std::string& folder, std::string told);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  /// From now on it is this trial, in the life that `claims` says, whose training may end the process.
  void begin(std::int64_t trial, std::int64_t claims);
  /// And from now on none.
  void end();

  /// How that life of the trial ended a worker: the exit status, or 128 + the signal. Nothing where it did not.
  static std::optional<int> status_of(const std::string& folder, std::int64_t trial, std::int64_t claims);
};

}  // namespace runner::sweep
