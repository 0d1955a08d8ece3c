#include "runner/core/log.h"

#include <spdlog/details/file_helper.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runner/core/deferred_log.h"
#include "runner/core/reader_output.h"
#include "runner/core/text/utf8.h"

namespace runner::core {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// On the terminal a line is just the message, with a prefix for warnings and errors, as in diagnostics.
class LevelPrefix final : public spdlog::custom_flag_formatter {
 public:
  explicit LevelPrefix(bool color) : color_(color) {}

  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const auto append = [&](std::string_view text) { out.append(text.data(), text.data() + text.size()); };
    if (message.level == spdlog::level::debug) append(color_ ? "\033[2mdebug:\033[0m " : "debug: ");
    if (message.level == spdlog::level::warn) append(color_ ? "\033[1;33mwarning:\033[0m " : "warning: ");
    if (message.level == spdlog::level::err) append(color_ ? "\033[1;31merror:\033[0m " : "error: ");
  }

  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelPrefix>(color_); }

 private:
  bool color_;
};

/// Standard error.
class Terminal final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_to_reader(STDERR_FILENO, {line.data(), line.size()});  // a line that is lost does not end what is at work
  }
  void flush_() override {}
};

/// The file of defer_log_file().
class HeldFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit HeldFile(std::string path) : path_(std::move(path)), since_(Clock::now()) {}

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kHeld{500};

  void sink_it_(const spdlog::details::log_msg& message) override {
    formatter_->format(message, lines_);
    if (!file_ && message.level < spdlog::level::warn && Clock::now() - since_ < kHeld) return;
    if (!file_) file_.emplace().open(path_);  // its folder too
    file_->write(lines_);
    lines_.clear();
  }
  void flush_() override {
    if (file_) file_->flush();
  }

  const std::string path_;
  const Clock::time_point since_;
  spdlog::memory_buf_t lines_;
  std::optional<spdlog::details::file_helper> file_;
};

constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})";
constexpr const char* kFilePattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

using Sink = std::shared_ptr<Terminal>;

/// Format and level of the lines on standard error.
void settle(const Sink& terminal, const LogOptions& options) {
  const auto utc = spdlog::pattern_time_type::utc;
  terminal->set_level(level_of(options.level));
  if (options.format == LogFormat::kJson) {
    terminal->set_formatter(std::make_unique<spdlog::pattern_formatter>(kJsonPattern, utc));
    return;
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>(utc);
  formatter->add_flag<LevelPrefix>('*', options.color).set_pattern("%*%v");
  terminal->set_formatter(std::move(formatter));
}

/// The sink of the lines, with its options.
struct Voice {
  Voice(const LogOptions& given, const std::vector<spdlog::sink_ptr>& sinks, spdlog::level::level_enum level)
      : options(given), logger("roux", sinks.begin(), sinks.end()) {
    logger.set_level(level);
    logger.flush_on(spdlog::level::debug);
    // A full disk: the line is lost, the run continues.
    logger.set_error_handler([](const std::string&) {});
  }

  void say(LogLevel level, std::string_view message) {
    const auto spd_level = level_of(level);
    if (!logger.should_log(spd_level)) return;
    if (options.format == LogFormat::kJson) {
      logger.log(spd_level, spdlog::string_view_t(json_quote(message)));
    } else {
      logger.log(spd_level, spdlog::string_view_t(escape_for_terminal(message)));  // it may quote untrusted files
    }
  }

  const LogOptions options;
  spdlog::logger logger;
};

thread_local std::shared_ptr<Voice> own_voice;  // ThreadLog

// All state of logging. One object, in libroux_base only, guarded by a mutex.
class Log {
 public:
  static Log& instance() {
    static auto* log = new Log;  // never destroyed: threads may log until exit
    return *log;
  }

  void configure(const LogOptions& options) {
    const std::lock_guard lock(mutex_);
    options_ = options;
    rebuild();
  }

  LogOptions options() const {
    const std::lock_guard lock(mutex_);
    return options_;
  }

  void set_file(const std::string& path) {
    const std::lock_guard lock(mutex_);
    file_.reset();
    try {
      if (!path.empty()) file_ = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    } catch (const spdlog::spdlog_ex&) {
      // A log that cannot be opened must not stop a run; the lines are still on standard error.
    }
    rebuild();
  }

  void hold_file(const std::string& path) {
    const std::lock_guard lock(mutex_);
    file_ = std::make_shared<HeldFile>(path);
    rebuild();
  }

  std::shared_ptr<Voice> voice() const {
    const std::lock_guard lock(mutex_);
    return voice_;
  }

 private:
  Log() : terminal_(std::make_shared<Terminal>()) { rebuild(); }

  void rebuild() {
    settle(terminal_, options_);
    std::vector<spdlog::sink_ptr> sinks{terminal_};
    if (file_) {
      const char* pattern = options_.format == LogFormat::kJson ? kJsonPattern : kFilePattern;
      file_->set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
      sinks.push_back(file_);
    }
    // A quiet run still logs to its file.
    const auto level = level_of(options_.level);
    voice_ = std::make_shared<Voice>(options_, sinks, file_ ? std::min(level, spdlog::level::info) : level);
  }

  mutable std::mutex mutex_;
  LogOptions options_;
  Sink terminal_;
  spdlog::sink_ptr file_;
  std::shared_ptr<Voice> voice_;
};

}  // namespace

void configure_log(const LogOptions& options) { Log::instance().configure(options); }
LogOptions log_options() { return Log::instance().options(); }
void set_log_file(const std::string& path) { Log::instance().set_file(path); }
void defer_log_file(const std::string& path) { Log::instance().hold_file(path); }

void log(LogLevel level, std::string_view message) {
  (own_voice != nullptr ? own_voice : Log::instance().voice())->say(level, message);
}

void flush_log() { Log::instance().voice()->logger.flush(); }

ThreadLog::ThreadLog() {
  const LogOptions options = log_options();
  const Sink terminal = std::make_shared<Terminal>();
  settle(terminal, options);
  own_voice = std::make_shared<Voice>(options, std::vector<spdlog::sink_ptr>{terminal}, level_of(options.level));
}

ThreadLog::~ThreadLog() { own_voice.reset(); }

std::string json_log_line(LogLevel level, std::string_view message, std::string_view place, std::string_view hint) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = ms / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char date[32], fraction[8];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(ms % 1000));
  const spdlog::string_view_t name = spdlog::level::to_string_view(level_of(level));
  std::string line = std::string(R"({"time":")") + date + fraction + R"(","level":")" +
                     std::string(name.data(), name.size()) + R"(","message":)" + json_quote(message);
  if (!place.empty()) line += R"(,"place":)" + json_quote(place);
  if (!hint.empty()) line += R"(,"hint":)" + json_quote(hint);
  return line + "}\n";
}

}  // namespace runner::core
