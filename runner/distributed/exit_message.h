#pragma once

#include <exception>
#include <functional>

#include "runner/core/error.h"

namespace runner::distributed {

/// The message of a process when a thread of Gloo throws, which cannot be caught: more data arrive than a rank expects,
/// as when ranks call different collectives. While an instance lives, such an exception ends the process with an error
/// and its exit status. Without one, or for any other uncaught exception, std::terminate applies.
class ExitMessage {
 public:
  /// `words` is called on Gloo's thread, once.
  explicit ExitMessage(std::function<core::RunError(const std::exception&)> words);
  ~ExitMessage();
  ExitMessage(const ExitMessage&) = delete;
  ExitMessage& operator=(const ExitMessage&) = delete;

  /// The process is about to report its own error: a thread that throws from now on waits for its end.
  void keep_silent();

 private:
  friend class Speakers;

  const std::function<core::RunError(const std::exception&)> words_;
  bool silent_ = false;
};

}  // namespace runner::distributed
