#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "components/callback/callback.h"
#include "runner/core/node.h"
#include "runner/store/run_writer.h"
#include "runner/train/observe/command_log.h"

namespace runner::core {
class Process;
}

namespace runner::train {

/// The programs that callbacks start: one at a time, in the order asked for, on a thread of their own. What goes wrong
/// with one is an event of the run; of each kind the first is a warning, and the number of all a second one at the end.
class ProgramQueue {
 public:
  /// More do not wait: a program that is slower than its events would be told of ever older ones.
  static constexpr std::size_t kWaitingMax = 16;

  /// `recipe`: settled, and must outlive this; what it names as secrets no program gets.
  ProgramQueue(store::RunWriter& run, const core::Node& recipe);
  /// Gives what is left a few seconds, as finish() does for a training that was stopped.
  ~ProgramQueue();
  ProgramQueue(const ProgramQueue&) = delete;
  ProgramQueue& operator=(const ProgramQueue&) = delete;

  /// Returns at once. Dropped where kWaitingMax others wait, unless it is a last one.
  void start(components::callback::Program program);

  enum class Patience {
    kTimeouts,  ///< what precedes the last ones may begin within the longest timeout; what runs has its own
    kShort,     ///< the training was stopped: what stops it may not wait
  };
  /// Waits until nothing is left. Where patience ends first, programs that have not begun are dropped; with kShort, or
  /// once `interrupted`, the one that runs is ended, too. Reports how many of each kind failed.
  void finish(Patience patience, const std::function<bool()>& interrupted = {});

 private:
  using Program = components::callback::Program;
  enum class Outcome { kDone, kFailed, kTimedOut, kNotStarted, kEnded, kDropped };

  struct Ended {
    Outcome outcome = Outcome::kDone;
    int status = 0;        ///< of a program that ended by itself
    std::string why = {};  ///< why it could not be started
    double seconds = 0;
  };

  void work();
  Ended run_one(const Program& program);
  Ended wait_for(core::Process& process, const Program& program);
  void end(core::Process& process);
  /// With the lock, or nothing else running: no other thread reports meanwhile.
  void report(const Program& program, const Ended& ended);
  void drop(const std::function<bool(const Program&)>& which);
  double longest_timeout_s();
  bool wait_until_idle(double seconds, bool before_last, const std::function<bool()>& interrupted);
  void tell_counts();

  store::RunWriter& run_;
  const core::Node& recipe_;
  const bool enabled_;
  CommandLog log_;
  std::map<std::string, std::string> environment_;  ///< read with the first program
  std::future<void> working_;

  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::deque<Program> waiting_;
  bool is_working_ = false;
  bool runs_last_ = false;                                            ///< of the program that runs: it is a last one
  double running_timeout_s_ = 0;                                      ///< of the same
  std::atomic<bool> gives_up_{false};                                 ///< on the same
  std::map<std::pair<std::string, Outcome>, std::int64_t> troubles_;  ///< by program
};

}  // namespace runner::train
