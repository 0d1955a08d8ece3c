#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tests {

// A program is run under ptrace: each of its calls to the kernel is seen before and after it happens, can be counted,
// and can be the one at which the program dies or the kernel refuses. x86-64 only, as everything that is traced here.

/// The program brackets what is tested with access(2) of these names; calls of all its threads between them count.
inline constexpr const char* kWindowBegin = "/roux-window/begin";
inline constexpr const char* kWindowEnd = "/roux-window/end";
/// Beside the brackets, a word of its own at some place in the window.
inline constexpr const char* kWindowMark = "/roux-window/mark";

/// Calls that cannot reach a file system (memory, time, scheduling, signals): they do not count, nor does an anonymous
/// mmap. Everything else does, whatever it is.
const std::vector<std::string>& calls_without_files();

/// What happens at the `at`-th counted call (from 1).
struct Injection {
  enum class Kind {
    kNone,
    kKillBefore,  ///< SIGKILL on the way in: the call does not happen
    kKillAfter,   ///< SIGKILL on return
    kError,       ///< the call does not happen and returns `error`
    kShort,       ///< a read or write does happen, with half of its bytes; other calls are left alone
  } kind = Kind::kNone;
  int at = 0;
  int error = 0;
};

/// What a call did to the disk, in the order in which the calls returned.
struct DiskEvent {
  enum class Kind {
    kMakeDir,
    kCreate,
    kWrite,     ///< `data` at `offset`
    kTruncate,  ///< to `offset` bytes
    kExtend,    ///< to at least `offset` bytes, zeros
    kSync,      ///< of a file or a folder
    kSyncAll,
    kRename,    ///< `path` became `other`
    kExchange,  ///< `path` and `other` changed places
    kUnlink,
    kRemoveDir,
    kMark,  ///< kWindowMark
  } kind;
  std::string path = {}, other = {}, data = {};
  std::int64_t offset = 0;
  int calls_before = 0;  ///< counted calls that had begun by then
};

struct Traced {
  int status = 0;  ///< exit status, or 128 + the signal
  int calls = 0;   ///< counted ones that began
  bool injected = false;
  std::string injected_call;         ///< `fsync /path`
  std::string output;                ///< standard output and error
  std::vector<std::string> counted;  ///< each counted call, when recording
  std::vector<DiskEvent> events;     ///< from the start of the program on, when recording, below the folder
  std::string not_understood;        ///< a call that may have changed the disk in a way no event says; "" is none
};

/// Where the window begins in a program that has no brackets.
struct WindowBegin {
  std::string call = {}, path_part = {};  ///< before a call of this name with a path that holds this
  int time = 1;                           ///< 1: the first of them, 2: the second, ...
};

struct TraceOptions {
  Injection injection = {};
  std::optional<WindowBegin> begin = {};
  std::string record_below = {};  ///< a folder: record what happens to it; "" records nothing
};

/// Runs it to its end. Nothing when the system does not permit ptrace here.
std::optional<Traced> trace(const std::vector<std::string>& command, const TraceOptions& options);

}  // namespace tests
