#include "runner/distributed/exit_message.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "runner/core/log.h"
#include "runner/core/text/utf8.h"

namespace runner::distributed {
namespace {

bool is_of_gloo(const std::exception& error) {
  return std::string_view(typeid(error).name()).find("4gloo") != std::string_view::npos;  // its namespace, mangled
}

}  // namespace

/// All live instances; a process has one terminate handler. Threads of Gloo outlive objects destroyed at exit.
class Speakers {
 public:
  static Speakers& of_process() {
    static auto* speakers = new Speakers;
    return *speakers;
  }

  void add(ExitMessage* one) {
    const std::lock_guard lock(mutex_);
    all_.push_back(one);
  }
  void remove(ExitMessage* one) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, one);
  }
  void keep_silent(ExitMessage* one) {
    const std::lock_guard lock(mutex_);
    one->silent_ = true;
  }

 private:
  Speakers() : before_(std::set_terminate(end_process)) {}

  [[noreturn]] static void end_process() {
    try {
      if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      if (is_of_gloo(error)) of_process().speak(error);
    } catch (...) {  // not of Gloo
    }
    of_process().before_();
    std::abort();
  }

  /// Returns if there is no message. A thread that wants to exit meanwhile waits at the mutex.
  void speak(const std::exception& error) {
    std::unique_lock lock(mutex_);
    if (all_.empty()) return;
    const auto speaker = std::find_if(all_.begin(), all_.end(), [](const ExitMessage* one) { return !one->silent_; });
    if (speaker == all_.end()) {
      lock.unlock();
      for (;;) pause();
    }
    const core::RunError words = (*speaker)->words_(error);
    core::flush_log();
    if (core::log_options().format == core::LogFormat::kJson) {
      std::fputs(core::json_log_line(core::LogLevel::kError, words.what(), "", words.hint()).c_str(), stderr);
    } else {
      std::fprintf(stderr, "error: %s\n  hint: %s\n", core::escape_for_terminal(words.what()).c_str(),
                   core::escape_for_terminal(words.hint()).c_str());
    }
    std::fflush(stderr);
    _exit(words.exit_code());  // no destructors: they would wait for Gloo
  }

  std::mutex mutex_;
  std::vector<ExitMessage*> all_;
  const std::terminate_handler before_;
};

ExitMessage::ExitMessage(std::function<core::RunError(const std::exception&)> words) : words_(std::move(words)) {
  Speakers::of_process().add(this);
}

ExitMessage::~ExitMessage() { Speakers::of_process().remove(this); }

void ExitMessage::keep_silent() { Speakers::of_process().keep_silent(this); }

}  // namespace runner::distributed
