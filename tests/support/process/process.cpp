#include "tests/support/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/support/paths.h"

namespace tests {

namespace {
constexpr int kSilenceMs = 5 * 60 * 1000;  // several times the longest pause of any test's program under load
}

Process::Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                 const std::string& folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no process");
  if (pid_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(127);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (pipe_ >= 0) close(pipe_);
}

bool Process::read_more() {
  pollfd readable = {pipe_, POLLIN, 0};
  if (poll(&readable, 1, kSilenceMs) == 0) {
    output_ += "\ntests: killed, since it has printed nothing for five minutes\n";
    kill(pid_, SIGKILL);
    return false;
  }
  char buffer[4096];
  const ssize_t n = read(pipe_, buffer, sizeof buffer);
  if (n <= 0) return false;
  output_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

bool Process::wait_for(const std::string& text) {
  while (true) {
    const auto found = output_.find(text, searched_);
    if (found != std::string::npos) {
      searched_ = found + text.size();
      return true;
    }
    if (!read_more()) return false;
  }
}

void Process::send(int signal) const { kill(pid_, signal); }

int Process::wait() {
  while (read_more()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string roux_program() { return build_dir() + "/bin/roux"; }

}  // namespace tests
