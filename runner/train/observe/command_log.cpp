#include "runner/train/observe/command_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runner/core/platform/files.h"

namespace runner::train {

void CommandLog::begin(const std::string& title) {
  end();
  program_bytes_ = 0;
  if (!core::make_folders(std::filesystem::path(path_).parent_path().string())) return;
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  struct stat found = {};
  if (file_ >= 0 && (::fstat(file_, &found) != 0 || found.st_size >= kFileBytesMax)) end();
  write("== " + title + "\n");
}

void CommandLog::line(const std::string& text) {
  if (program_bytes_ >= kProgramBytesMax) return;
  program_bytes_ += static_cast<std::int64_t>(text.size()) + 1;
  write(program_bytes_ < kProgramBytesMax ? text + "\n" : "(it printed more)\n");
}

void CommandLog::end() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void CommandLog::write(const std::string& text) {
  std::size_t written = 0;
  while (file_ >= 0 && written < text.size()) {
    const ssize_t bytes = ::write(file_, text.data() + written, text.size() - written);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) end();
    written += bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }
}

}  // namespace runner::train
