#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runner::core {

/// A child process whose standard output and error are read line by line.
class Process {
 public:
  enum class Lifetime {
    kDiesWithParent,
    kDiesWithChildren,  ///< the same including its children: in its own process group
    kOutlivesParent,    ///< in its own session: terminal signals do not reach it, and it outlives this process
  };
  enum class Input {
    kInherited,
    kPipe,  ///< for write()
  };
  enum class Inherits {
    kEverything,  ///< variables, standard input, blocked signals and descriptors that this process has not marked
    kNothing,     ///< the variables are those it is given, standard input is /dev/null; for programs of a user
  };
  struct Start {
    std::vector<std::string> command;
    std::map<std::string, std::string> environment = {};  ///< added to this process's own, if that is inherited
    Lifetime lifetime = Lifetime::kDiesWithParent;
    Input input = Input::kInherited;
    Inherits inherits = Inherits::kEverything;
  };
  /// RunError when it cannot be started. A program that is not there is a child that exits with 127: start_error().
  explicit Process(const Start& start);
  explicit Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment = {},
                   Lifetime lifetime = Lifetime::kDiesWithParent, Input input = Input::kInherited);
  ~Process();  ///< kills the process if it runs, unless it is to outlive this one
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  enum class Read { kLine, kEnd, kTimeout };
  /// Blocks for the next whole line, its end (the child closed its output) or `timeout_ms`, whichever comes first. A
  /// line of more than `bytes_max` comes in pieces.
  Read read_line(std::string& line, std::int64_t timeout_ms, std::size_t bytes_max = SIZE_MAX);
  enum class Write { kDone, kClosed, kTimeout };
  /// Writes all of it to its standard input; output meanwhile is kept for read_line(), up to kUnreadBytesMax. kClosed:
  /// it stopped reading.
  Write write(std::string_view text, std::int64_t timeout_ms);
  static constexpr std::size_t kUnreadBytesMax = 16U << 20;
  void close_input();
  /// Why the child did not become the program, as errno has it; 0: it did.
  int start_error() const { return start_error_; }
  /// Whether the process itself has ended; its output and what it started may not have. For wait() it is there still.
  bool has_ended() const;
  /// Not after wait().
  void send(int signal) const;
  /// The same to its process group, of kDiesWithChildren: also where the process itself has ended.
  void send_to_all(int signal) const;
  /// Closes the pipe and waits. The exit status, or 128 + the signal that ended it.
  int wait();
  /// The same with a timeout; nothing if it still runs: a closed output is no exit.
  std::optional<int> wait_for(std::int64_t timeout_ms);

 private:
  void read_some();      ///< of what it prints, or its end
  bool reap(int flags);  ///< false where it still runs

  pid_t pid_ = -1;
  int status_ = 0;  // once it has ended
  int start_error_ = 0;
  int pipe_ = -1;
  int input_ = -1;
  Lifetime lifetime_;
  std::string buffer_;
};

/// The path of the running program.
std::string own_program();

/// A library of this program: in ../lib beside it, in a build folder and in an installed prefix.
std::string library_beside_program(const std::string& name);

}  // namespace runner::core
