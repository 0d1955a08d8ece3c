#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace tests {

/// A child process whose standard output and error are read line by line. Everything blocks until it happens: no test
/// sleeps or polls. A process that prints nothing for five minutes hangs: it is killed, and its output says so.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment = {},
          const std::string& folder = "");
  ~Process();  ///< kills what still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Reads until a line holds `text`; false when the output ended first or it hangs.
  bool wait_for(const std::string& text);
  void send(int signal) const;
  /// Reads the rest and waits. The exit status, or 128 + the signal that ended it.
  int wait();
  const std::string& output() const { return output_; }
  pid_t pid() const { return pid_; }

 private:
  bool read_more();

  pid_t pid_ = -1;
  int pipe_ = -1;
  std::string output_;
  std::size_t searched_ = 0;
};

/// The built program, from the build folder.
std::string roux_program();

}  // namespace tests
