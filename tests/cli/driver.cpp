// Runs *.cli files: what a user types, what the program answers. README.md beside this file is the format.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kBlockTimeLimit{120};
constexpr std::size_t kOutputBytesMax = 16u << 20;

using Lines = std::vector<std::string>;

struct InputFile {
  std::string name;
  std::string content;
};

struct Block {
  int line = 0;  // of NAME
  std::string name;
  std::vector<InputFile> files;
  std::string script;
  Lines expected;
  int exit_status = 0;
  // Lines of the file, 0-based: what UPDATE_GOLDEN replaces.
  std::size_t expect_begin = 0, exit_line = 0;
};

struct Outcome {
  Lines output;
  int exit_status = 0;
  bool timed_out = false;
};

struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Lines split_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw FormatError(path.string() + ": cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string decode_base64(const std::string& text) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '\n' || c == '=') continue;
    const auto value = kAlphabet.find(c);
    if (value == std::string_view::npos) throw FormatError(std::string("not base64: '") + c + "'");
    bits = bits << 6 | static_cast<unsigned>(value);
    if ((count += 6) >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 0xff));
  }
  return bytes;
}

class Parser {
 public:
  Parser(std::string path, const Lines& lines) : path_(std::move(path)), lines_(lines) {}

  std::vector<Block> blocks() {
    std::vector<Block> found;
    while (at_ < lines_.size()) {
      const std::string& line = lines_[at_];
      if (line.empty() || line[0] == '#') {
        ++at_;
      } else {
        found.push_back(block());
      }
    }
    if (found.empty()) fail("no NAME: block");
    return found;
  }

 private:
  Block block() {
    Block b;
    b.line = static_cast<int>(at_) + 1;
    b.name = take("NAME:");
    while (at_ < lines_.size() && lines_[at_].starts_with("FILE ")) b.files.push_back(input_file());
    b.script = take("RUN:");
    while (current() != "EXPECT:") b.script += "\n" + lines_[at_++];
    b.expect_begin = ++at_;
    while (!current().starts_with("EXIT:")) b.expected.push_back(lines_[at_++]);
    b.exit_line = at_;
    const std::string status = take("EXIT:");
    char* end = nullptr;
    b.exit_status = static_cast<int>(std::strtol(status.c_str(), &end, 10));
    if (status.empty() || *end != '\0') fail("EXIT: needs a number, got \"" + status + "\"");
    return b;
  }

  InputFile input_file() {
    std::istringstream words(lines_[at_++]);
    std::string keyword, encoding;
    InputFile file;
    words >> keyword >> file.name >> encoding;
    while (current() != "END") file.content += lines_[at_++] + "\n";
    ++at_;
    if (encoding == "base64") {
      file.content = decode_base64(file.content);
    } else if (!encoding.empty()) {
      fail("FILE takes a name and nothing or base64, got \"" + encoding + "\"");
    }
    return file;
  }

  std::string take(std::string_view keyword) {
    if (!current().starts_with(keyword)) fail(std::string(keyword) + " expected, got \"" + current() + "\"");
    std::string rest = lines_[at_++].substr(keyword.size());
    return rest.starts_with(' ') ? rest.substr(1) : rest;
  }

  const std::string& current() const {
    if (at_ >= lines_.size()) fail("the file ends inside a block");
    return lines_[at_];
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(path_ + ":" + std::to_string(at_ + 1) + ": error: " + what);
  }

  std::string path_;
  const Lines& lines_;
  std::size_t at_ = 0;
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// `<*>` in the pattern stands for any text of one line.
bool line_matches(std::string_view pattern, std::string_view text) {
  const auto star = pattern.find("<*>");
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const auto rest = pattern.substr(star + 3);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (line_matches(rest, text.substr(at))) return true;
  }
  return false;
}

/// `...` as a line of the pattern stands for any number of lines.
bool output_matches(const Lines& pattern, const Lines& output) {
  // reach[j]: the pattern so far can consume exactly the first j lines.
  std::vector<char> reach(output.size() + 1, 0);
  reach[0] = 1;
  for (const std::string& line : pattern) {
    std::vector<char> next(output.size() + 1, 0);
    if (line == "...") {
      char seen = 0;
      for (std::size_t j = 0; j <= output.size(); ++j) next[j] = seen |= reach[j];
    } else {
      for (std::size_t j = 0; j < output.size(); ++j) next[j + 1] = reach[j] && line_matches(line, output[j]);
    }
    reach = std::move(next);
  }
  return reach[output.size()];
}

void print_diff(const Lines& expected, const Lines& output) {
  const std::size_t n = expected.size(), m = output.size();
  std::vector<std::vector<std::size_t>> common(n + 1, std::vector<std::size_t>(m + 1, 0));
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      common[i][j] = line_matches(expected[i], output[j]) ? common[i + 1][j + 1] + 1
                                                          : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && line_matches(expected[i], output[j])) {
      std::cout << "    " << output[j] << "\n";
      ++i, ++j;
    } else if (i < n && (j == m || common[i + 1][j] >= common[i][j + 1])) {
      std::cout << "  - " << expected[i++] << "\n";
    } else {
      std::cout << "  + " << output[j++] << "\n";
    }
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "roux-cli-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder: " + pattern);
    path_ = fs::canonical(pattern);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Programs {
  fs::path bin;   // the folder with roux
  fs::path root;  // the source tree
};

[[noreturn]] void become_script(const Block& block, const fs::path& folder, const Programs& programs, int output) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::close(output);
  if (::chdir(folder.c_str()) != 0) ::_exit(127);
  for (char** entry = environ; *entry != nullptr;) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (name.starts_with("ROUX_") && !name.starts_with("ROUX_CPU_")) {
      ::unsetenv(name.c_str());
    } else {
      ++entry;
    }
  }
  const char* path = std::getenv("PATH");
  ::setenv("PATH", (programs.bin.string() + ":" + (path == nullptr ? "/usr/bin:/bin" : path)).c_str(), 1);
  ::setenv("ROUX_ROOT", programs.root.c_str(), 1);
  ::setenv("HOME", folder.c_str(), 1);
  ::setenv("PWD", folder.c_str(), 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  ::setenv("TZ", "UTC", 1);
  for (const char* name :
       {"NO_COLOR", "COLUMNS", "UPDATE_GOLDEN", "CI", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) {
    ::unsetenv(name);
  }
  ::execlp("bash", "bash", "-c", block.script.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

/// Reads until the script has ended or its time is over; whatever it left running is killed.
Outcome run_script(const Block& block, const fs::path& folder, const Programs& programs) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become_script(block, folder, programs, ends[1]);
  ::setpgid(child, child);
  ::close(ends[1]);

  Outcome outcome;
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + kBlockTimeLimit;
  int status = 0;
  bool ended = false;
  for (;;) {
    pollfd wait{ends[0], POLLIN, 0};
    const int ready = ::poll(&wait, 1, 20);
    if (ready > 0) {
      char buffer[65536];
      const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
      if (got == 0 || (got < 0 && errno != EINTR)) break;
      if (got > 0 && text.size() < kOutputBytesMax) text.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    if (ended && ready == 0) break;  // it may have written between the last poll and its end
    if (!ended && ::waitpid(child, &status, WNOHANG) == child) ended = true;
    if (ended) ::kill(-child, SIGKILL);  // background jobs that hold the pipe
    if (std::chrono::steady_clock::now() > deadline) {
      outcome.timed_out = true;
      break;
    }
  }
  if (outcome.timed_out) ::kill(-child, SIGKILL);
  if (!ended) ::waitpid(child, &status, 0);
  ::kill(-child, SIGKILL);
  ::close(ends[0]);
  outcome.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  replace_all(text, folder.string(), "$PWD");
  replace_all(text, programs.root.string(), "$ROUX_ROOT");
  outcome.output = split_lines(text);
  return outcome;
}

Outcome run_block(const Block& block, const Programs& programs) {
  const TemporaryFolder folder;
  for (const InputFile& file : block.files) {
    const fs::path path = folder.path() / file.name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << file.content;
  }
  return run_script(block, folder.path(), programs);
}

/// Replaces what did not hold, from the last block to the first so that line numbers stay true.
void rewrite(const fs::path& path, Lines lines, const std::vector<std::pair<Block, Outcome>>& changed) {
  for (auto it = changed.rbegin(); it != changed.rend(); ++it) {
    const auto& [block, outcome] = *it;
    lines[block.exit_line] = "EXIT: " + std::to_string(outcome.exit_status);
    const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(block.expect_begin);
    lines.erase(begin, lines.begin() + static_cast<std::ptrdiff_t>(block.exit_line));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(block.expect_begin), outcome.output.begin(),
                 outcome.output.end());
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const std::string& line : lines) out << line << "\n";
}

void report(const fs::path& path, const Block& block, const Outcome& outcome) {
  std::cout << path.string() << ":" << block.line << ": error: " << block.name << "\n";
  if (outcome.timed_out) std::cout << "  was still running after " << kBlockTimeLimit.count() << " s\n";
  if (outcome.exit_status != block.exit_status) {
    std::cout << "  exit status " << outcome.exit_status << ", expected " << block.exit_status << "\n";
  }
  if (!output_matches(block.expected, outcome.output)) print_diff(block.expected, outcome.output);
}

/// Returns the number of blocks that failed.
int run_file(const fs::path& path, const Programs& programs, const std::string& only, bool update, int* count) {
  const Lines lines = split_lines(read_whole(path));
  std::vector<std::pair<Block, Outcome>> wrong;
  for (const Block& block : Parser(path.string(), lines).blocks()) {
    if (block.name.find(only) == std::string::npos) continue;
    ++*count;
    const Outcome outcome = run_block(block, programs);
    if (!outcome.timed_out && outcome.exit_status == block.exit_status &&
        output_matches(block.expected, outcome.output)) {
      continue;
    }
    if (!update || outcome.timed_out) report(path, block, outcome);
    wrong.emplace_back(block, outcome);
  }
  if (!update) return static_cast<int>(wrong.size());
  if (!wrong.empty()) rewrite(path, lines, wrong);
  std::cout << path.string() << ": " << wrong.size() << " rewritten\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  std::vector<fs::path> files;
  Programs programs;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else if (argument == "--root" && i + 1 < argc) {
      programs.root = fs::canonical(argv[++i]);
    } else {
      files.emplace_back(argument);
    }
  }
  if (files.empty()) {
    std::cerr << "usage: cli_driver [--root SOURCE_TREE] [--only TEXT_OF_NAME] FILE.cli...\n";
    return 2;
  }
  try {
    programs.bin = fs::canonical("/proc/self/exe").parent_path();
    if (programs.root.empty()) programs.root = fs::canonical(ROUX_SOURCE_DIR);
    const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
    int failed = 0, count = 0;
    for (const fs::path& file : files) failed += run_file(file, programs, only, update, &count);
    std::cout << count - failed << " of " << count << " blocks passed\n";
    return failed == 0 && count > 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
