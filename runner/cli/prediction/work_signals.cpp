#include "runner/cli/prediction/work_signals.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "runner/core/end_signals.h"
#include "runner/core/reader_output.h"
#include "runner/core/text/utf8.h"
#include "runner/launch/rank_environment.h"

namespace runner::cli {
namespace {

/// Text that a handler can read: it must not allocate, and the text may change while it runs.
class SharedText {
 public:
  static constexpr std::size_t kBytesMax = PATH_MAX + 256;

  /// False where the text is too long, which a path that can be opened is not.
  bool set(std::string_view text) {
    length_ = 0;
    if (text.size() >= kBytesMax) return false;
    std::memcpy(bytes_.data(), text.data(), text.size());
    bytes_[text.size()] = '\0';
    length_ = text.size();
    return true;
  }
  void clear() { length_ = 0; }
  bool empty() const { return length_ == 0; }
  const char* c_str() const { return bytes_.data(); }
  std::size_t size() const { return length_; }

 private:
  std::array<char, kBytesMax> bytes_ = {};
  std::atomic<std::size_t> length_{0};
};

SharedText draft, what_is_there_now;
std::atomic<bool> is_silent{true};

void print(std::string_view text) { core::write_to_reader(STDERR_FILENO, text); }

}  // namespace

void end_work(int signal) {
  core::note_asked_to_end(true);
  if (!draft.empty()) unlink(draft.c_str());
  if (!is_silent) {
    print("interrupted by ");
    print(core::end_signal_name(signal));
    print(": ");
    print({what_is_there_now.c_str(), what_is_there_now.size()});
    print("\n");
  }
  _exit(128 + signal);
}

void end_work_on_signals(const std::string& what_is_there) {
  tell_on_signal(what_is_there);
  is_silent = launch::is_above_rank_0();
  core::handle_end_signals(end_work);
}

void tell_on_signal(const std::string& what_is_there) {
  what_is_there_now.set(core::escape_for_terminal(what_is_there));
}

DraftGuard::DraftGuard(const std::string& path) : is_guarded_(draft.empty() && draft.set(path)) {}

DraftGuard::~DraftGuard() {
  if (is_guarded_) draft.clear();
}

}  // namespace runner::cli
