#pragma once

#include <string>

namespace runner::cli {

/// From here on each of core::end_signals() ends this process with status 128 + the signal, but removes the file of a
/// DraftGuard first, and says what is there on standard error: `interrupted by SIGTERM: ...`. Of several processes the
/// first one says so. A signal that is ignored stays ignored.
void end_work_on_signals(const std::string& what_is_there);

/// From here on this is what is there.
void tell_on_signal(const std::string& what_is_there);

/// What a handler of a signal does, for one that counts signals first: async-signal-safe, and does not return.
[[noreturn]] void end_work(int signal);

/// While it lives, a signal that ends the work removes this file. One at a time; a second one is not removed.
class DraftGuard {
 public:
  explicit DraftGuard(const std::string& path);
  ~DraftGuard();
  DraftGuard(const DraftGuard&) = delete;
  DraftGuard& operator=(const DraftGuard&) = delete;

 private:
  bool is_guarded_;
};

}  // namespace runner::cli
