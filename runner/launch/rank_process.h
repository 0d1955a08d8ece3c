#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace runner::launch {

/// One process that a supervisor started: in a process group of its own, so that a signal from the terminal reaches it
/// through the supervisor alone; it dies with the thread that started it.
class RankProcess {
 public:
  enum class Output {
    kOurs,  ///< it has our standard output and error
    kKept,  ///< its last lines are kept for who asks, and shown or filed where that is asked for
  };
  struct Options {
    std::map<std::string, std::string> environment;  ///< beside our own
    Output output = Output::kOurs;
    bool show_output = false, show_error = false;  ///< lines that are kept are passed on to our own streams
    std::string prefix;                            ///< in front of each line that is passed on
    std::string log_file;                          ///< lines that are kept are appended to it; "" for none
    std::vector<int> descriptors;                  ///< that it inherits under their numbers, beside the standard ones
    std::vector<int> cores;                        ///< that it may run on; all of ours when empty
  };

  /// RunError when it cannot be started, or its file cannot be written.
  RankProcess(std::string name, const std::vector<std::string>& command, const Options& options);
  /// The same without another program: does `work` in a fork of this process, which must have one thread only. What
  /// `work` returns is its exit status, and nothing of this process is taken apart there.
  RankProcess(std::string name, const std::function<int()>& work, const Options& options);
  ~RankProcess();  ///< kills it where it still runs, and waits
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  const std::string& name() const { return name_; }  ///< `rank 1`
  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Looks whether it has ended; true when it has, now or before.
  bool has_ended();
  int signal() const { return signal_; }
  /// The exit status, or 128 + the signal that ended it. Of one that has ended.
  int status() const { return signal_ != 0 ? 128 + signal_ : status_; }

  std::vector<int> outputs() const;  ///< to be polled
  void read_output();                ///< what there is, without waiting for more
  std::string exit_message() const;  ///< launch/exit_message.h

 private:
  /// Our end of its standard output or error.
  struct Stream {
    int descriptor = -1;
    int passed_on_to = -1;  ///< our own stream; -1: to none
    std::string begun;      ///< a line without its end
  };
  struct Beginning;
  /// None yet: what follows may throw, and leave nothing open.
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
