#pragma once

#include <string>
#include <string_view>

namespace runner::core {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  ///< `--quiet` is kWarning, `--verbose` is kDebug.
  LogFormat format = LogFormat::kText;
  bool color = false;  ///< A terminal, and NO_COLOR unset.
};

/// The program's log: lines on standard error, and in `logs/rank-N.log` once a run has a folder. spdlog does the work
/// and stays behind this header (LibTorch carries another fmt). Thread-safe; never throws; never blocks on a full disk.
void configure_log(const LogOptions& options);
LogOptions log_options();
/// Adds the file; an empty path removes it.
void set_log_file(const std::string& path);
void log(LogLevel level, std::string_view message);

inline void log_debug(std::string_view message) { log(LogLevel::kDebug, message); }
inline void log_info(std::string_view message) { log(LogLevel::kInfo, message); }
inline void log_warning(std::string_view message) { log(LogLevel::kWarning, message); }
void flush_log();

/// A line of the JSON log with its line feed, for what is printed beside the log: an error of the command line or of a
/// recipe. `place` and `hint` are left out when they are empty.
std::string json_log_line(LogLevel level, std::string_view message, std::string_view place, std::string_view hint);

/// While it lives, lines of its thread go to standard error with the current options, and to no file, regardless of
/// later configuration: for a thread that supervises a training in this process. One at a time a thread.
class ThreadLog {
 public:
  ThreadLog();
  ~ThreadLog();
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;
};

}  // namespace runner::core
