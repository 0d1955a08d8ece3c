#include "runner/launch/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runner/core/error.h"

namespace runner::launch {
namespace {

constexpr std::size_t kLinesKept = 200;
constexpr std::size_t kLastLinesShown = 5;
constexpr std::string_view kError = "error: ";

[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment, pid_t parent,
                         int output, const std::vector<int>& descriptors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before that
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // the supervisor reads its signals from a descriptor
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  for (const int descriptor : descriptors) fcntl(descriptor, F_SETFD, 0);
  execvpe(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

std::vector<std::string> joined_environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : added) variables.push_back(name + "=" + value);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!added.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

RankProcess::RankProcess(std::string name, const std::vector<std::string>& command, const Options& options)
    : name_(std::move(name)) {
  // What allocates happens before the fork.
  std::vector<std::string> words = command, variables = joined_environment(options.environment);
  const std::vector<char*> arguments = pointers(words), environment = pointers(variables);
  int ends[2] = {-1, -1};
  if (options.output == Output::kKept && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw core::RunError(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  if (ends[1] >= 0) fcntl(ends[1], F_SETFL, 0);  // only our end does not wait
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(arguments, environment, parent, ends[1], options.descriptors);
  const int error = errno;
  if (ends[1] >= 0) close(ends[1]);
  pipe_ = ends[0];
  if (pid_ > 0) return;
  if (pipe_ >= 0) close(pipe_);
  throw core::RunError("cannot start " + name_ + ": " + std::strerror(error));
}

RankProcess::~RankProcess() {
  if (!has_died_) {
    send(SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (pipe_ >= 0) close(pipe_);
}

void RankProcess::send(int signal) const {
  if (!has_died_) ::kill(pid_, signal);
}

bool RankProcess::has_ended() {
  int status = 0;
  if (has_died_ || waitpid(pid_, &status, WNOHANG) != pid_) return has_died_;
  has_died_ = true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  read_output();
  return true;
}

void RankProcess::read_output() {
  char bytes[65536];
  while (pipe_ >= 0) {
    const ssize_t got = ::read(pipe_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(std::exchange(pipe_, -1));
      return;
    }
    begun_.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n')) {
      lines_.push_back(begun_.substr(0, end));
      begun_.erase(0, end + 1);
      if (lines_.size() > kLinesKept) lines_.pop_front();
    }
  }
}

std::string RankProcess::last_words() const {
  std::size_t begin = lines_.size();
  for (std::size_t i = lines_.size(); i > 0 && begin == lines_.size(); --i) {
    if (lines_[i - 1].starts_with(kError)) begin = i - 1;
  }
  std::string text;
  if (begin < lines_.size()) {
    text = lines_[begin].substr(kError.size());
  } else if (!lines_.empty()) {
    begin = lines_.size() - std::min(lines_.size(), kLastLinesShown);
    text = "it said last:\n  " + lines_[begin];
  }
  for (std::size_t i = begin + 1; i < lines_.size(); ++i) text += "\n" + lines_[i];
  return text;
}

}  // namespace runner::launch
