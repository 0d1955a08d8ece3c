#include "runner/core/platform/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runner/core/clock.h"
#include "runner/core/error.h"

namespace runner::core {
namespace {

constexpr std::int64_t kLookMs = 5;  // whether a child has ended

/// A signal handler of this process would also run in the child, in the memory of both.
void forget_handlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
  }
}

/// What a child becomes, ready for exec: it may allocate nothing.
struct Child {
  std::vector<char*> arguments, environment;
  int output = -1, input = -1;
  Process::Lifetime lifetime = Process::Lifetime::kDiesWithParent;
  bool inherits = true;
  volatile int error = 0;  ///< of exec, written by the child into the memory of both
};

void read_nothing() {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

[[noreturn]] void become(Child& child, sigset_t signals) {
  forget_handlers();
  const Process::Lifetime lifetime = child.lifetime;
  if (lifetime != Process::Lifetime::kOutlivesParent) {
    if (lifetime == Process::Lifetime::kDiesWithChildren) setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  } else {
    setsid();
  }
  if (lifetime == Process::Lifetime::kOutlivesParent || !child.inherits) {
    sigemptyset(&signals);
    read_nothing();
  }
  if (child.input >= 0) dup2(child.input, STDIN_FILENO);
  dup2(child.output, STDOUT_FILENO);
  dup2(child.output, STDERR_FILENO);
  // An older kernel lacks the call: the descriptors stay.
  if (!child.inherits) close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvpe(child.arguments[0], child.arguments.data(), child.environment.data());
  child.error = errno;
  _exit(127);
}

/// The child borrows this process's memory until it becomes the other program: a fork would copy the page tables of all
/// that LibTorch has mapped, and then every page that either of them touches. No signal may come in between: its
/// handler would run in the child, on what is the parent's.
pid_t begin(Child& child) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) become(child, before);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

/// The variables of this process, but for those that are given.
void add_own_variables(const std::map<std::string, std::string>& given, std::vector<char*>& variables) {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const char* equals = std::strchr(*variable, '=');
    if (equals == nullptr || !given.contains(std::string(*variable, static_cast<std::size_t>(equals - *variable))))
      variables.push_back(*variable);
  }
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 Lifetime lifetime, Input input)
    : Process(Start{.command = command, .environment = environment, .lifetime = lifetime, .input = input}) {}

Process::Process(const Start& start) : lifetime_(start.lifetime) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw RunError(std::string("cannot create a pipe: ") + std::strerror(errno));
  // A socket, not a pipe: writing to a closed one returns an error instead of a signal.
  int inputs[2] = {-1, -1};
  if (start.input == Input::kPipe && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inputs) != 0) {
    const int error = errno;
    for (const int end : ends) close(end);
    throw RunError(std::string("cannot create a socket: ") + std::strerror(error));
  }
  // All allocations happen before the child exists: another thread may hold the allocator's lock.
  Child child;
  child.output = ends[1];
  child.input = inputs[1];
  child.lifetime = lifetime_;
  child.inherits = start.inherits == Inherits::kEverything;
  for (const std::string& word : start.command) child.arguments.push_back(const_cast<char*>(word.c_str()));
  child.arguments.push_back(nullptr);
  std::vector<std::string> given;
  for (const auto& [name, value] : start.environment) given.push_back(name + "=" + value);
  for (std::string& variable : given) child.environment.push_back(variable.data());
  if (child.inherits) add_own_variables(start.environment, child.environment);
  child.environment.push_back(nullptr);
  pid_ = begin(child);
  const int error = errno;
  close(ends[1]);
  if (inputs[1] >= 0) close(inputs[1]);
  pipe_ = ends[0];
  input_ = inputs[0];
  if (pid_ < 0) {
    close(pipe_);
    close_input();
    throw RunError("cannot start " + start.command.front() + ": " + std::strerror(error));
  }
  start_error_ = child.error;  // vfork: the child has run exec by now, or ended
}

Process::~Process() {
  if (pid_ > 0 && lifetime_ != Lifetime::kOutlivesParent) {
    ::kill(lifetime_ == Lifetime::kDiesWithChildren ? -pid_ : pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (pipe_ >= 0) close(pipe_);
  close_input();
}

Process::Read Process::read_line(std::string& line, std::int64_t timeout_ms, std::size_t bytes_max) {
  const std::int64_t deadline_ns = system_clock().monotonic_ns() + timeout_ms * 1'000'000;
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos || buffer_.size() > bytes_max) {
      const std::size_t bytes = std::min({end, buffer_.size(), bytes_max});
      line = buffer_.substr(0, bytes);
      buffer_.erase(0, bytes == end ? bytes + 1 : bytes);
      return Read::kLine;
    }
    if (pipe_ < 0) return Read::kEnd;
    const std::int64_t left_ms = (deadline_ns - system_clock().monotonic_ns() + 999'999) / 1'000'000;
    pollfd waiting = {pipe_, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, INT_MAX)));
    if (ready == 0) return Read::kTimeout;
    if (ready < 0 && errno == EINTR) continue;
    read_some();
  }
}

void Process::read_some() {
  char bytes[4096];
  const ssize_t got = ::read(pipe_, bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return;
  if (got > 0) {
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return;
  }
  close(pipe_);
  pipe_ = -1;
  if (!buffer_.empty() && buffer_.back() != '\n') buffer_ += '\n';  // a last line without its end
}

Process::Write Process::write(std::string_view text, std::int64_t timeout_ms) {
  const std::int64_t deadline_ns = system_clock().monotonic_ns() + timeout_ms * 1'000'000;
  while (!text.empty()) {
    if (input_ < 0) return Write::kClosed;
    const ssize_t sent = ::send(input_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return Write::kClosed;
    // A child that blocks on its output would never read.
    const std::int64_t left_ms = (deadline_ns - system_clock().monotonic_ns() + 999'999) / 1'000'000;
    pollfd waiting[2] = {{input_, POLLOUT, 0}, {pipe_, POLLIN, 0}};  // poll ignores closed ones
    const int ready = poll(waiting, 2, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, INT_MAX)));
    if (ready == 0) return Write::kTimeout;
    if (ready < 0 || waiting[1].revents == 0) continue;
    if (left_ms <= 0) return Write::kTimeout;  // it prints endlessly and does not read
    const std::size_t kept = buffer_.size();
    read_some();
    if (kept >= kUnreadBytesMax) buffer_.resize(std::min(kept, buffer_.size()));
  }
  return Write::kDone;
}

void Process::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

void Process::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);  // -1 would be all processes
}

void Process::send_to_all(int signal) const {
  if (pid_ > 0 && lifetime_ == Lifetime::kDiesWithChildren) ::kill(-pid_, signal);
}

bool Process::has_ended() const {
  if (pid_ < 0) return true;
  siginfo_t ended = {};
  // Left in its place: its number is not given to another process while its group may be signalled.
  return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid_;
}

int Process::wait() {
  reap(0);
  return status_;
}

std::optional<int> Process::wait_for(std::int64_t timeout_ms) {
  const std::int64_t deadline_ns = system_clock().monotonic_ns() + timeout_ms * 1'000'000;
  while (!reap(WNOHANG)) {
    const std::int64_t left_ms = (deadline_ns - system_clock().monotonic_ns() + 999'999) / 1'000'000;
    if (left_ms <= 0) return std::nullopt;
    poll(nullptr, 0, static_cast<int>(std::min(left_ms, kLookMs)));
  }
  return status_;
}

bool Process::reap(int flags) {
  if (pipe_ >= 0) close(pipe_);
  pipe_ = -1;
  if (pid_ < 0) return true;
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid_, &status, flags);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  pid_ = -1;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

std::string library_beside_program(const std::string& name) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? name : (program.parent_path().parent_path() / "lib" / name).string();
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace runner::core
