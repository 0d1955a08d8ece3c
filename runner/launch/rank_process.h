#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace runner::launch {

/// One process that a supervisor started: in a process group of its own, so that a signal from the terminal reaches it
/// through the supervisor alone; it dies with the thread that started it.
class RankProcess {
 public:
  enum class Output {
    kOurs,  ///< it has our standard output and error
    kKept,  ///< its last lines are kept for who asks
  };
  struct Options {
    std::map<std::string, std::string> environment;  ///< beside our own
    Output output = Output::kOurs;
    std::vector<int> descriptors;  ///< that it inherits under their numbers, beside the standard ones
  };

  /// RunError when it cannot be started.
  RankProcess(std::string name, const std::vector<std::string>& command, const Options& options);
  ~RankProcess();  ///< kills it where it still runs, and waits
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  const std::string& name() const { return name_; }  ///< `rank 1`
  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Looks whether it has ended; true when it has, now or before.
  bool has_ended();
  bool was_killed() const { return has_died_ && signal_ != 0; }
  int signal() const { return signal_; }
  /// The exit status, or 128 + the signal that ended it. Of one that has ended.
  int status() const { return signal_ != 0 ? 128 + signal_ : status_; }

  int output() const { return pipe_; }  ///< to be polled; -1 when there is nothing to read
  void read_output();                   ///< what there is, without waiting for more
  /// The last error that it printed, without the word, with its hint; else its last lines; "" when it printed none.
  std::string last_words() const;

 private:
  std::string name_;
  pid_t pid_ = -1;
  int pipe_ = -1;
  bool has_died_ = false;
  int status_ = 0, signal_ = 0;
  std::string begun_;  ///< a line without its end
  std::deque<std::string> lines_;
};

}  // namespace runner::launch
