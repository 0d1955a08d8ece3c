#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace runner::train {

/// What programs of a run print: one file, to which a resumed run adds. Bounded for each program and as a whole, so
/// that endless output does not fill the disk. A file that cannot be written loses output and nothing else.
class CommandLog {
 public:
  static constexpr std::int64_t kProgramBytesMax = 64 << 10;
  static constexpr std::int64_t kFileBytesMax = 16 << 20;

  explicit CommandLog(std::string path) : path_(std::move(path)) {}
  ~CommandLog() { end(); }
  CommandLog(const CommandLog&) = delete;
  CommandLog& operator=(const CommandLog&) = delete;

  const std::string& path() const { return path_; }

  /// The head of a program's output.
  void begin(const std::string& title);
  void line(const std::string& text);
  void end();

 private:
  void write(const std::string& text);

  const std::string path_;
  int file_ = -1;
  std::int64_t program_bytes_ = 0;
};

}  // namespace runner::train
