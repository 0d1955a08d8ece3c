#include "runner/cli/generation/chat_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"

namespace runner::cli {
namespace {

constexpr std::size_t kMessagesMax = 1000;
constexpr std::size_t kMessageBytes = 8192;                     // longer ones were pasted
constexpr std::int64_t kFileBytesMax = std::int64_t{64} << 20;  // twice as many messages need less
constexpr mode_t kForUserAlone = S_IRUSR | S_IWUSR;

/// A descriptor that is closed.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : value_(open(path.c_str(), flags | O_CLOEXEC, kForUserAlone)) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  /// Whether all was written, to a regular file.
  bool put(const std::string& text) const {
    struct stat file = {};
    if (value_ < 0 || fstat(value_, &file) != 0) return false;
    if (!S_ISREG(file.st_mode)) {
      errno = EINVAL;
      return false;
    }
    if (fchmod(value_, kForUserAlone) != 0) return false;
    return write(value_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

 private:
  int value_;
};

std::vector<std::string> messages_of(std::string_view text) {
  std::vector<std::string> messages;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto message = core::parse_json(text.substr(0, end));
    if (message && message.value().is_string()) messages.push_back(message.value().as_string());
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return messages;
}

void replace(const std::string& named, const std::vector<std::string>& messages) {
  const auto target = core::output_target(named);  // a link stays
  if (!target || target.value().is_in_place) return;
  const std::string& path = target.value().path;
  const std::string part = path + ".part-" + std::to_string(getpid());
  std::string text;
  for (const std::string& message : messages) text += core::json_quote(message) + "\n";
  const bool written = Descriptor(part, O_WRONLY | O_CREAT | O_EXCL).put(text);
  if (!written || std::rename(part.c_str(), path.c_str()) != 0) unlink(part.c_str());
}

}  // namespace

std::string ChatHistory::usual_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/roux/chat_history";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/roux/chat_history" : "";
}

void ChatHistory::fail(const std::string& what) {
  problem_ = what;
  path_.clear();
}

std::vector<std::string> ChatHistory::load() {
  std::error_code ignored;
  if (path_.empty() || !std::filesystem::exists(path_, ignored)) return {};
  const auto text = core::read_file(path_, kFileBytesMax);
  if (!text) {
    fail(text.failure().message);
    return {};
  }
  std::vector<std::string> messages = messages_of(text.value());
  const bool is_long = messages.size() > 2 * kMessagesMax;
  if (messages.size() > kMessagesMax) messages.erase(messages.begin(), messages.end() - kMessagesMax);
  if (is_long) replace(path_, messages);
  if (!messages.empty()) last_ = messages.back();
  return messages;
}

void ChatHistory::add(const std::string& message) {
  if (path_.empty() || message == last_ || message.size() > kMessageBytes) return;
  last_ = message;
  if (const auto made = core::make_folders(std::filesystem::path(path_).parent_path().string()); !made) {
    return fail(made.failure().message);
  }
  if (!Descriptor(path_, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK).put(core::json_quote(message) + "\n")) {
    fail("cannot write " + path_ + ": " + std::strerror(errno));
  }
}

}  // namespace runner::cli
