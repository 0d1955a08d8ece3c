#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>

#include "runner/core/clock.h"
#include "runner/core/path.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/recipe/document.h"
#include "runner/recipe/source_text.h"

extern "C" {
#include <libjsonnet.h>
}

namespace runner::recipe {
namespace {

using core::Location;
using core::Node;
using core::Source;

constexpr int kEvaluationSecondsMax = 5;
constexpr rlim_t kEvaluationBytesMax = 2ULL << 30;

// The child's result: `ok` and the JSON text, or the library's error; and the files it has read.
struct Outcome {
  bool ok = false;
  std::string text;
  std::map<std::string, std::string> files;
};

// ---- the child
// -------------------------------------------------------------------------------------------------------

struct Importer {
  JsonnetVm* vm = nullptr;
  const Limits* limits = nullptr;
  std::map<std::string, std::string> files;
};

char* copied(JsonnetVm* vm, const std::string& text) {
  char* buffer = jsonnet_realloc(vm, nullptr, text.size() + 1);
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return buffer;
}

char* import_file(void* context, const char* base, const char* relative, char** found_here, int* success) {
  auto& importer = *static_cast<Importer*>(context);
  const std::string path = relative[0] == '/' ? relative : std::string(base) + relative;
  *success = 0;
  if (static_cast<int>(importer.files.size()) >= importer.limits->includes_max) {
    return copied(importer.vm, "a recipe imports at most " + std::to_string(importer.limits->includes_max) + " files");
  }
  const auto text = core::read_file(path, importer.limits->file_bytes_max);
  if (!text) return copied(importer.vm, text.failure().message);
  // The library takes a C string: a NUL would cut the file silently.
  if (text.value().find('\0') != std::string::npos) return copied(importer.vm, path + " is a binary file");
  importer.files[path] = text.value();
  const std::size_t begin = SourceText::begin_of(text.value());
  *found_here = copied(importer.vm, path);
  *success = 1;
  return copied(importer.vm, text.value().substr(begin));
}

void write_all(int fd, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) _exit(1);
    done += static_cast<std::size_t>(wrote);
  }
}

std::string framed(const std::string& text) {
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

[[noreturn]] void evaluate_in_child(int fd, const Source& source, const ComposeOptions& options) {
  const rlimit seconds{kEvaluationSecondsMax, kEvaluationSecondsMax};
  ::setrlimit(RLIMIT_CPU, &seconds);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow alone is larger
  const rlimit bytes{kEvaluationBytesMax, kEvaluationBytesMax};
  ::setrlimit(RLIMIT_AS, &bytes);
#endif
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // The library aborts when out of memory; its output is not for the user.
  const int null = ::open("/dev/null", O_WRONLY);
  if (null >= 0) ::dup2(null, STDERR_FILENO);

  JsonnetVm* vm = jsonnet_make();
  Importer importer{vm, &options.limits, {}};
  jsonnet_import_callback(vm, import_file, &importer);
  for (const auto& [name, value] : options.ext) jsonnet_ext_var(vm, name.c_str(), value.c_str());
  int failed = 0;
  const char* text = jsonnet_evaluate_snippet(vm, source.name.c_str(),
                                              source.text.c_str() + SourceText::begin_of(source.text), &failed);
  std::string answer(1, failed ? 'E' : 'O');
  answer += framed(text);
  for (const auto& [path, content] : importer.files) answer += framed(path) + framed(content);
  write_all(fd, answer);
  _exit(0);
}

// ---- the parent
// ------------------------------------------------------------------------------------------------------

std::optional<std::string> take_frame(std::string_view& rest) {
  std::uint64_t size = 0;
  if (rest.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, rest.data(), sizeof size);
  rest.remove_prefix(sizeof size);
  if (rest.size() < size) return std::nullopt;
  std::string text(rest.substr(0, size));
  rest.remove_prefix(size);
  return text;
}

std::optional<Outcome> parse_answer(std::string_view answer) {
  if (answer.empty()) return std::nullopt;
  Outcome outcome;
  outcome.ok = answer[0] == 'O';
  answer.remove_prefix(1);
  auto text = take_frame(answer);
  if (!text) return std::nullopt;
  outcome.text = std::move(*text);
  while (!answer.empty()) {
    auto path = take_frame(answer);
    auto content = take_frame(answer);
    if (!path || !content) return std::nullopt;
    outcome.files[*path] = std::move(*content);
  }
  return outcome;
}

// Nothing when the child's result is incomplete; `why` has the reason.
std::optional<Outcome> evaluate(const Source& source, const ComposeOptions& options, std::string& why) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    why = std::string("no pipe: ") + std::strerror(errno);
    return std::nullopt;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    why = std::string("no process: ") + std::strerror(errno);
    ::close(ends[0]);
    ::close(ends[1]);
    return std::nullopt;
  }
  if (child == 0) evaluate_in_child(ends[1], source, options);
  ::close(ends[1]);

  const std::int64_t deadline_ns = core::system_clock().monotonic_ns() + (kEvaluationSecondsMax + 1) * 1'000'000'000LL;
  const std::size_t answer_bytes_max = 1 + static_cast<std::size_t>(options.limits.file_bytes_max) * 64;
  std::string answer;
  bool late = false;
  while (true) {
    const std::int64_t left_ms = (deadline_ns - core::system_clock().monotonic_ns()) / 1'000'000;
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = left_ms > 0 ? ::poll(&waiting, 1, static_cast<int>(left_ms)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    late = ready == 0;
    if (ready <= 0 || answer.size() > answer_bytes_max) break;
    char buffer[1 << 16];
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (late || answer.size() > answer_bytes_max) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const bool out_of_time =
      late || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
  auto outcome = parse_answer(answer);
  if (!outcome) {
    why = out_of_time ? "it takes more than " + std::to_string(kEvaluationSecondsMax) + " s"
                      : "it takes more than 2 GB of memory, or nests too deep";
  }
  return outcome;
}

// The library's complaint, cut into what it says and where.
struct Complaint {
  std::string message;
  std::string file;
  int line = 0, column = 0, end_column = 0;
};

// Reads `3:9-14` or `(3:9)-(5:2)`; how many characters that were, 0 when it is not a position.
std::size_t take_position(std::string_view text, Complaint& complaint) {
  std::size_t at = 0;
  const auto number = [&](int& value) {
    const std::size_t begin = at;
    for (value = 0; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) && value < 100'000'000; ++at)
      value = value * 10 + (text[at] - '0');
    return at > begin;
  };
  if (at < text.size() && text[at] == '(') ++at;
  if (!number(complaint.line) || at >= text.size() || text[at] != ':') return 0;
  ++at;
  if (!number(complaint.column)) return 0;
  if (at < text.size() && text[at] == ')') ++at;
  if (at < text.size() && text[at] == '-') {
    ++at;
    if (at < text.size() && text[at] == '(') {
      at = std::min(text.find(')', at), text.size());
      if (at < text.size()) ++at;
    } else {
      number(complaint.end_column);
    }
  }
  return at;
}

Complaint understand(std::string text, const std::vector<std::string>& files) {
  Complaint complaint;
  const bool is_static = text.starts_with("STATIC ERROR: ");
  for (const std::string_view prefix : {"STATIC ERROR: ", "RUNTIME ERROR: "}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  // A static error begins with its location; a runtime error has one line for each frame below it.
  const std::size_t first_line = text.find('\n');
  complaint.message = text.substr(0, first_line);
  const auto find_location = [&](std::string_view part, bool cut) {
    for (const std::string& file : files) {
      if (!part.starts_with(file + ":")) continue;
      const std::size_t length = take_position(part.substr(file.size() + 1), complaint);
      if (length == 0) continue;
      complaint.file = file;
      if (cut) {
        const std::size_t begin = file.size() + 1 + length;
        complaint.message = std::string(part.substr(begin, part.find('\n') - begin));
        if (complaint.message.starts_with(": ")) complaint.message.erase(0, 2);
      }
      return true;
    }
    return false;
  };
  if (is_static) {
    find_location(text, true);
  } else {
    for (std::size_t at = first_line; at != std::string::npos; at = text.find('\n', at + 1)) {
      const std::size_t begin = text.find_first_not_of("\n\t ", at);
      if (begin != std::string::npos && find_location(std::string_view(text).substr(begin), false)) break;
    }
  }
  if (!complaint.message.empty())
    complaint.message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(complaint.message[0])));
  while (!complaint.message.empty() && complaint.message.back() == '.') complaint.message.pop_back();
  return complaint;
}

std::string hint_for(const std::string& message) {
  const std::string_view undefined = "undefined external variable: ";
  if (message.starts_with(undefined)) {
    const std::string name = message.substr(undefined.size());
    return "define it with --ext " + name + "=VALUE";
  }
  if (message.starts_with("couldn't open import")) return "imports are relative to the file that names them";
  if (message.starts_with("max stack frames exceeded")) return "infinite recursion of a function, or of two values";
  return "";
}

void complain(const Source& source, const std::string& text, const Sources& files, core::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file->name);
  Complaint complaint = understand(text, names);
  Location location{files.front(), 0, 0, 1};
  for (const auto& file : files) {
    if (file->name == complaint.file)
      location =
          Location{file, complaint.line, complaint.column, std::max(1, complaint.end_column - complaint.column + 1)};
  }
  if (complaint.message.empty()) complaint.message = source.name + " cannot be evaluated";
  // The library names the import and repeats our own reason after it.
  diagnostics.error(location, core::escape_for_terminal(complaint.message), hint_for(complaint.message));
}

// Gives the values of an evaluated file locations in its text, where that is plain to see: a key that is written
// there exactly once. The others stand at the file as a whole; messages name the path in the recipe anyway.
class Locator {
 public:
  explicit Locator(std::shared_ptr<const Source> source) : source_(source), text_(std::move(source)) { index(); }

  void locate(Node& node, const Location& location) {
    node.set_location(location);
    for (Node& item : node.items()) locate(item, location);
    for (auto& entry : node.entries()) {
      const auto found = keys_.find(entry.key);
      const bool once = found != keys_.end() && found->second.count == 1;
      entry.key_location = once ? found->second.location : Location{source_, 0, 0, 1};
      locate(entry.value, once ? place_of_value(entry.value, found->second) : entry.key_location);
    }
  }

 private:
  struct Key {
    int count = 0;
    Location location, value_location;
    std::size_t value = 0;  // offset
  };

  // The value itself when it is written out after its key, else the key.
  Location place_of_value(const Node& value, const Key& key) const {
    if (value.is_mapping() || value.is_sequence()) return key.location;
    const std::string_view rest = std::string_view(source_->text).substr(key.value);
    const std::string written = value.scalar_text();
    const std::size_t quote = !rest.empty() && (rest[0] == '"' || rest[0] == '\'') ? 1 : 0;
    if (!rest.substr(quote).starts_with(written)) return key.location;
    const std::size_t end = quote + written.size();
    if (quote == 0 && end < rest.size() && is_word(rest[end])) return key.location;
    Location location = key.value_location;
    location.width = static_cast<int>(std::max<std::size_t>(core::count_code_points(written) + 2 * quote, 1));
    return location;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  }

  // Every `name:` of the text, with or without quotes; comments and texts may add some, which only costs locations.
  void index() {
    const std::string_view text = source_->text;
    for (std::size_t colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
      std::size_t end = colon;
      while (end > 0 && text[end - 1] == '+') --end;
      const bool quoted = end > 0 && (text[end - 1] == '"' || text[end - 1] == '\'');
      if (quoted) --end;
      std::size_t begin = end;
      while (begin > 0 && is_word(text[begin - 1])) --begin;
      if (begin == end) continue;
      Key& key = keys_[std::string(text.substr(begin, end - begin))];
      ++key.count;
      key.location = text_.location(begin, end);
      key.value = std::min(text.find_first_not_of(" \t:", colon + 1), text.size());
      key.value_location = text_.location(key.value, key.value + 1);
    }
  }

  std::shared_ptr<const Source> source_;
  SourceText text_;
  std::map<std::string, Key> keys_;
};

/// Jsonnet prints 17 digits of a computed number, which are not in the file.
void forget_digits(Node& node) {
  if (node.kind() == Node::Kind::kFloat) node.set_written("");
  for (Node& item : node.items()) forget_digits(item);
  for (Node::Entry& entry : node.entries()) forget_digits(entry.value);
}

}  // namespace

std::optional<Node> read_jsonnet(std::shared_ptr<const Source> source, const ComposeOptions& options, Sources& imported,
                                 core::Diagnostics& diagnostics) {
  SourceText text(source);
  if (!check_text(text, options.limits, diagnostics)) return std::nullopt;
  std::string why;
  const auto outcome = evaluate(*source, options, why);
  const Location whole{source, 0, 0, 1};
  if (!outcome) {
    diagnostics.error(whole, "the file cannot be evaluated: " + why, "look for infinite recursion");
    return std::nullopt;
  }
  Sources files{source};
  for (const auto& [path, content] : outcome->files) {
    files.push_back(std::make_shared<const Source>(Source{path, content, Source::Kind::kFile}));
  }
  imported.insert(imported.end(), files.begin() + 1, files.end());
  if (!outcome->ok) {
    complain(*source, outcome->text, files, diagnostics);
    return std::nullopt;
  }
  const auto json = std::make_shared<const Source>(Source{source->name, outcome->text, Source::Kind::kFile});
  core::Diagnostics own;
  auto node = read_json(json, options.limits, own);
  for (const auto& item : own.all()) diagnostics.error(whole, item.message, item.hint);
  if (!node) return std::nullopt;
  forget_digits(*node);
  Locator(source).locate(*node, whole);
  return node;
}

}  // namespace runner::recipe
