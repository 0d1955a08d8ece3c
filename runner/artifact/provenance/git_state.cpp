#include "runner/artifact/provenance/git_state.h"

#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/process.h"
#include "runner/core/platform/run_async.h"

namespace runner::artifact {
namespace {

using core::Node;
using core::Process;

constexpr std::int64_t kPatience_ms = 10'000;  // a large repository on a slow file system
constexpr std::int64_t kLook_ms = 50;          // between looks at `stop`
constexpr int kLowestPriority = 19;
constexpr int kNoSuchProgram = 127;
constexpr std::int64_t kStatusBytesMax = 16 << 20;
// A submodule has a configuration of its own: only its commit is looked at.
constexpr const char* kNoSubmodules = "--ignore-submodules=dirty";

struct Output {
  int status = -1;  ///< -1: not waited for
  std::string text;
  bool is_cut = false;
};

/// One repository, queried with one timeout. What its configuration names is not run: it may come from anywhere.
class Git {
 public:
  Git(const GitStateOptions& options, const std::atomic<bool>& stop)
      : options_(options), stop_(stop), deadline_ns_(core::system_clock().monotonic_ns() + kPatience_ms * 1'000'000) {
    // Neither colours, pagers, warnings within a diff nor other programs; an object that a partial clone lacks is not
    // fetched.
    variables_ = {{"LC_ALL", "C"},          {"GIT_OPTIONAL_LOCKS", "0"}, {"GIT_TERMINAL_PROMPT", "0"},
                  {"GIT_PAGER", "cat"},     {"GIT_NO_LAZY_FETCH", "1"},  {"GIT_ALLOW_PROTOCOL", "none"},
                  {"GIT_CONFIG_COUNT", "0"}};
    configure("core.safecrlf", "false");
    configure("core.fsmonitor", "false");
    configure("core.hooksPath", "/dev/null");
    leave_out_filters();
  }

  Output ask(const std::vector<std::string>& question, std::int64_t bytes_max) const {
    std::vector<std::string> command = {options_.git, "-C", options_.folder};
    command.insert(command.end(), question.begin(), question.end());
    Process git(command, variables_, Process::Lifetime::kDiesWithChildren);
    Output output;
    std::string line;
    for (;;) {
      const Process::Read read = git.read_line(line, kLook_ms);
      if (read == Process::Read::kEnd) break;
      if (stop_ || core::system_clock().monotonic_ns() > deadline_ns_) return output;
      if (read == Process::Read::kTimeout) continue;
      if (static_cast<std::int64_t>(output.text.size() + line.size()) >= bytes_max) {
        output.status = 0;
        output.is_cut = true;
        return output;  // what it has left to say goes with it
      }
      output.text += line + "\n";
    }
    output.status = git.wait();
    return output;
  }

 private:
  /// In the environment: a name in an argument of `-c` would end at its first '='.
  void configure(const std::string& name, const std::string& value) {
    const int count = std::stoi(variables_["GIT_CONFIG_COUNT"]);
    variables_["GIT_CONFIG_KEY_" + std::to_string(count)] = name;
    variables_["GIT_CONFIG_VALUE_" + std::to_string(count)] = value;
    variables_["GIT_CONFIG_COUNT"] = std::to_string(count + 1);
  }

  /// Files pass through filters before they are compared. Those of the user and the system (Git LFS) stay.
  void leave_out_filters() {
    const Output filters =
        ask({"config", "--show-scope", "--name-only", "--get-regexp", "^filter\\."}, kStatusBytesMax);
    std::istringstream lines(filters.text);
    std::set<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t tab = line.find('\t'), last = line.rfind('.');
      if (tab == std::string::npos || last <= tab) continue;
      const std::string scope = line.substr(0, tab);
      if (scope != "system" && scope != "global") found.insert(line.substr(tab + 1, last - tab - 1));
    }
    for (const std::string& filter : found) {
      for (const char* what : {".clean", ".smudge", ".process"}) configure(filter + what, "");
      configure(filter + ".required", "false");
    }
  }

  const GitStateOptions& options_;
  const std::atomic<bool>& stop_;
  std::int64_t deadline_ns_;
  std::map<std::string, std::string> variables_;
};

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t begin = text.rfind('\n');
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

std::string why(const Output& output) {
  if (output.status == kNoSuchProgram) return "git is not installed";
  if (output.status < 0) return "git timed out";
  if (output.text.find("not a git repository") != std::string::npos) return "no git repository";
  return last_line(output.text);
}

/// Lines of `git status --porcelain=v2 --branch`: `# branch.oid HASH`, `1 ...` and so on for a changed file, `? PATH`.
void read_status(const std::string& text, GitState& state) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# branch.oid ") && line != "# branch.oid (initial)") state.commit = line.substr(13);
    if (line.starts_with("# branch.head ") && line != "# branch.head (detached)") state.branch = line.substr(14);
    if (line.starts_with("1 ") || line.starts_with("2 ") || line.starts_with("u ")) ++state.changed;
    if (!line.starts_with("? ")) continue;
    if (state.untracked_count++ < GitState::kUntrackedMax) state.untracked.push_back(line.substr(2));
  }
}

/// A token in the address of a remote must not be recorded.
std::string without_user(std::string address) {
  const std::size_t scheme = address.find("://");
  if (scheme == std::string::npos) return address;
  const std::size_t host = scheme + 3;
  const std::size_t at = address.rfind('@', address.find('/', host));
  if (at != std::string::npos && at >= host) address.erase(host, at + 1 - host);
  return address;
}

GitState ask_git(const GitStateOptions& options, const std::atomic<bool>& stop) {
  const Git git(options, stop);
  GitState state;
  const Output status = git.ask({"status", "--porcelain=v2", "--branch", kNoSubmodules}, kStatusBytesMax);
  if (status.status != 0) {
    state.note = why(status);
    return state;
  }
  read_status(status.text, state);
  const Output remote = git.ask({"config", "--get", "remote.origin.url"}, kStatusBytesMax);
  if (remote.status == 0) state.remote = without_user(last_line(remote.text));
  if (state.changed == 0 || options.diff_bytes_max == 0) return state;
  if (state.commit.empty()) {
    state.note = "there is no commit yet to compare with";
    return state;
  }
  Output diff = git.ask(
      {"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", kNoSubmodules, "--binary", "HEAD"},
      options.diff_bytes_max);
  if (diff.status != 0) {
    state.note = "no diff: " + why(diff);
    return state;
  }
  state.diff = std::move(diff.text);
  state.diff_is_cut = diff.is_cut;
  if (diff.is_cut) state.note = "the diff is truncated: it is longer than capture.diff_limit";
  return state;
}

}  // namespace

Node GitState::to_node() const {
  Node node = Node::mapping();
  node.set("commit", Node::string(commit));
  node.set("branch", Node::string(branch));
  node.set("remote", Node::string(remote));
  node.set("changed", Node::integer(changed));
  node.set("untracked_count", Node::integer(untracked_count));
  std::vector<Node> paths;
  for (const std::string& path : untracked) paths.push_back(Node::string(path));
  node.set("untracked", Node::sequence(std::move(paths)));
  node.set("diff", Node::string(diff.empty() ? "" : kDiffFile));
  node.set("diff_bytes", Node::integer(static_cast<std::int64_t>(diff.size())));
  node.set("diff_is_cut", Node::boolean(diff_is_cut));
  node.set("note", Node::string(note));
  return node;
}

GitState read_git_state(const GitStateOptions& options, const std::atomic<bool>& stop) {
  try {
    return ask_git(options, stop);
  } catch (const core::RunError& error) {  // no process could be started
    GitState state;
    state.note = error.what();
    return state;
  }
}

GitStateCapture::GitStateCapture(const GitStateOptions& options)
    : state_(core::run_async([this, options] { return read_git_state(options, stop_); }, kLowestPriority).share()) {}

}  // namespace runner::artifact
