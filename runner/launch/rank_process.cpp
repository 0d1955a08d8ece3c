#include "runner/launch/rank_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/reader_output.h"
#include "runner/launch/exit_message.h"

namespace runner::launch {
namespace {

constexpr std::size_t kLinesKept = 200;

/// The ends of a pipe. Ours is non-blocking, and closed by its user.
struct Pipe {
  int theirs = -1;

  Pipe() = default;
  ~Pipe() {
    if (theirs >= 0) close(theirs);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Returns our end; -1 on failure, with `errno`.
  int open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    fcntl(ends[1], F_SETFL, 0);
    theirs = ends[1];
    return ends[0];
  }
};

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a full disk does not end training
    done += static_cast<std::size_t>(written);
  }
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

/// The state of the new process. It must not allocate before exec: another thread of its parent may hold the
/// allocator's lock.
struct RankProcess::Beginning {
  pid_t parent;
  int output, error;  ///< -1: ours
  const std::vector<int>& descriptors;
  const cpu_set_t* cores;  ///< null: all of ours

  void settle_in() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before prctl()
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);  // the supervisor reads its signals from a descriptor
    if (output >= 0) dup2(output, STDOUT_FILENO);
    if (error >= 0) dup2(error, STDERR_FILENO);
    for (const int descriptor : descriptors) fcntl(descriptor, F_SETFD, 0);
    if (cores != nullptr) sched_setaffinity(0, sizeof *cores, cores);
  }
};

RankProcess::RankProcess(std::string name, std::string prefix) : name_(std::move(name)), prefix_(std::move(prefix)) {}

RankProcess::RankProcess(std::string name, const std::vector<std::string>& command, const Options& options)
    : RankProcess(std::move(name), options.prefix) {
  // Allocate before the fork.
  std::vector<std::string> words = command, variables = joined_environment(options.environment);
  const std::vector<char*> arguments = pointers(words), environment = pointers(variables);
  begin(options, [&](const Beginning& beginning) {
    beginning.settle_in();
    execvpe(arguments[0], arguments.data(), environment.data());
    _exit(127);
  });
}

RankProcess::RankProcess(std::string name, const std::function<int()>& work, const Options& options)
    : RankProcess(std::move(name), options.prefix) {
  begin(options, [&](const Beginning& beginning) noexcept {  // must not return into our code
    beginning.settle_in();
    for (const auto& [variable, value] : options.environment) setenv(variable.c_str(), value.c_str(), 1);
    _exit(work());
  });
}

void RankProcess::begin(const Options& options, const std::function<void(const Beginning&)>& become) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : options.cores) CPU_SET(core, &cores);
  if (!options.log_file.empty()) {
    log_ = open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log_ < 0) throw core::RunError("cannot write " + options.log_file + ": " + std::strerror(errno));
  }
  Pipe output, error;
  const bool is_kept = options.output == Output::kKept;
  if (is_kept) output_ = {output.open(), options.show_output ? STDOUT_FILENO : -1, ""};
  if (is_kept && output.theirs >= 0) error_ = {error.open(), options.show_error ? STDERR_FILENO : -1, ""};
  const Beginning beginning = {getpid(), output.theirs, error.theirs, options.descriptors,
                               options.cores.empty() ? nullptr : &cores};
  if (!is_kept || error.theirs >= 0) pid_ = fork();
  if (pid_ == 0) become(beginning);
  has_died_ = pid_ < 0;
  if (pid_ > 0) return;
  const int why = errno;
  throw core::RunError("cannot start " + name_ + ": " + std::strerror(why));
}

RankProcess::~RankProcess() {
  if (!has_died_) {
    send(SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int descriptor : {output_.descriptor, error_.descriptor, log_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

std::vector<int> RankProcess::outputs() const {
  std::vector<int> open;
  for (const int descriptor : {output_.descriptor, error_.descriptor}) {
    if (descriptor >= 0) open.push_back(descriptor);
  }
  return open;
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

bool RankProcess::is_stopped() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");  // the name may hold anything
  return name_end != std::string::npos && text.substr(name_end + 2, 2) == "T ";
}

void RankProcess::read_output() {
  read(output_);
  read(error_);
}

void RankProcess::read(Stream& stream) {
  char bytes[65536];
  while (stream.descriptor >= 0) {
    const ssize_t got = ::read(stream.descriptor, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      close(std::exchange(stream.descriptor, -1));
      if (!stream.begun.empty()) take(std::exchange(stream.begun, ""), stream);
      return;
    }
    stream.begun.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end = stream.begun.find('\n'); end != std::string::npos; end = stream.begun.find('\n')) {
      take(stream.begun.substr(0, end), stream);
      stream.begun.erase(0, end + 1);
    }
  }
}

void RankProcess::take(const std::string& line, const Stream& stream) {
  lines_.push_back(line);
  if (lines_.size() > kLinesKept) lines_.pop_front();
  if (log_ >= 0) write_all(log_, line + "\n");
  if (stream.passed_on_to >= 0) core::write_to_reader(stream.passed_on_to, prefix_ + line + "\n");
}

std::string RankProcess::exit_message() const { return launch::exit_message(lines_); }

}  // namespace runner::launch
