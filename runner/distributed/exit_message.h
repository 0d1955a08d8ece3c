#pragma once

#include <exception>
#include <functional>

#include "runner/core/error.h"

namespace runner::distributed {

/// What a process says when a thread of Gloo throws, where nobody can catch: more arrives than a rank waits for, as
/// when ranks make different collectives. While one of these lives, such an exception ends the process with an error
/// and its exit code. Without, or with anything else that nobody catches, it is ended as by std::terminate.
class ExitMessage {
 public:
  /// `words` is called on Gloo's thread, once.
  explicit ExitMessage(std::function<core::RunError(const std::exception&)> words);
  ~ExitMessage();
  ExitMessage(const ExitMessage&) = delete;
  ExitMessage& operator=(const ExitMessage&) = delete;

  /// The process is about to say an error of its own: a thread that throws from now on waits for its end.
  void keep_silent();

 private:
  friend class Speakers;

  const std::function<core::RunError(const std::exception&)> words_;
  bool silent_ = false;
};

}  // namespace runner::distributed
