#pragma once

#include <stdexcept>
#include <string>

namespace runner::core {

/// Exit status of the program; see docs/errors.md.
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitInternalError = 70,
  kExitResumable = 75,
  kExitPeerLost = 76,  ///< of one rank among several: another one is to blame. A supervisor never passes it on.
};

/// An error of the environment: a file, a rank, a record met while training. Names paths or ranks. The only exception
/// that crosses layers; `main` prints it as `error: message` and `  hint: ...` and exits with `exit_code()`.
class RunError : public std::runtime_error {
 public:
  explicit RunError(const std::string& message, std::string hint = "", int exit_code = kExitFailed)
      : std::runtime_error(message), hint_(std::move(hint)), exit_code_(exit_code) {}

  const std::string& hint() const { return hint_; }
  int exit_code() const { return exit_code_; }

 private:
  std::string hint_;
  int exit_code_;
};

/// Prints message, stack and "please report", then exits with kExitInternalError.
[[noreturn]] void assertion_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace runner::core

/// For bugs in roux only: never for user input.
#define RUNNER_ASSERT(condition, why) \
  ((condition) ? void(0) : ::runner::core::assertion_failed(#condition, why, __FILE__, __LINE__))
