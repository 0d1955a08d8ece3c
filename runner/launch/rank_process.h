#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace runner::launch {

/// A process that a supervisor started: in its own process group, so that a signal from the terminal reaches it only
/// through the supervisor. It dies with the thread that started it.
class RankProcess {
 public:
  enum class Output {
    kOurs,  ///< uses our standard output and error
    kKept,  ///< its last lines are kept, and optionally shown or written to a file
  };
  struct Options {
    std::map<std::string, std::string> environment;  ///< added to our own
    Output output = Output::kOurs;
    bool show_output = false, show_error = false;  ///< copies lines to our own streams
    std::string prefix;                            ///< of each copied line
    std::string log_file;                          ///< lines are appended to it; "" for none
    std::vector<int> descriptors;                  ///< that it inherits in addition to the standard ones
    std::vector<int> cores;                        ///< that it may run on; empty: all of ours
  };

  /// RunError when it cannot be started, or its file cannot be written.
  RankProcess(std::string name, const std::vector<std::string>& command, const Options& options);
  /// The same without another program: runs `work` in a fork of this process, which must be single-threaded. `work`
  /// returns the exit status; no destructors of this process run there.
  RankProcess(std::string name, const std::function<int()>& work, const Options& options);
  ~RankProcess();  ///< kills it if it still runs, and waits
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  const std::string& name() const { return name_; }  ///< `rank 1`
  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Whether it has ended.
  bool has_ended();
  bool is_stopped() const;  ///< by SIGSTOP or the like
  int signal() const { return signal_; }
  /// The exit status, or 128 + the signal that ended it. Call after it has ended.
  int status() const { return signal_ != 0 ? 128 + signal_ : status_; }

  std::vector<int> outputs() const;  ///< for poll()
  void read_output();                ///< without blocking
  std::string exit_message() const;  ///< launch/exit_message.h

 private:
  /// Our end of its standard output or error.
  struct Stream {
    int descriptor = -1;
    int passed_on_to = -1;  ///< our own stream; -1: to none
    std::string begun;      ///< an unfinished line
  };
  struct Beginning;
  /// Without a process yet, so that nothing leaks when begin() throws.
  RankProcess(std::string name, std::string prefix);
  void begin(const Options& options, const std::function<void(const Beginning&)>& become);
  void read(Stream& stream);
  void take(const std::string& line, const Stream& stream);

  std::string name_;
  std::string prefix_;
  pid_t pid_ = -1;
  int log_ = -1;
  Stream output_, error_;
  bool has_died_ = true;
  int status_ = 0, signal_ = 0;
  std::deque<std::string> lines_;
};

}  // namespace runner::launch
