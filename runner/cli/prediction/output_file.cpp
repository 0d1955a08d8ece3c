#include "runner/cli/prediction/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runner/core/error.h"

namespace runner::cli {

namespace fs = std::filesystem;

OutputFile::OutputFile(const std::string& path)
    : path_(path), written_path_(path), owned_(nullptr, std::fclose), file_(stdout) {
  if (path.empty()) {
    tell_on_signal("the output is not complete");
    return;
  }
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (fs::is_directory(fs::status(path, ignored))) {
    throw core::RunError("cannot write " + path + ": it is a folder", "name a file in it", core::kExitUsage);
  }
  if (fs::exists(path, ignored) && access(path.c_str(), W_OK) != 0) fail(std::strerror(errno));
  // A link keeps its target, which may not exist yet, and a pipe or device is written as it is.
  const bool is_new = !fs::exists(status);
  if (is_new || fs::is_regular_file(status)) {
    written_path_ += ".part-" + std::to_string(getpid());
    draft_.emplace(written_path_);
  }
  tell_on_signal(path + (!draft_ ? " is not complete" : is_new ? " was not written" : " is as it was before"));
  owned_.reset(std::fopen(written_path_.c_str(), "w"));
  if (owned_ == nullptr) fail(std::strerror(errno));
  file_ = owned_.get();
}

OutputFile::~OutputFile() {
  if (file_ == nullptr || written_path_ == path_) return;
  owned_.reset();
  std::error_code ignored;
  fs::remove(written_path_, ignored);
}

void OutputFile::fail(const std::string& why) const {
  throw core::RunError("cannot write " + (path_.empty() ? "to standard output" : path_) + ": " + why,
                       path_.empty() ? "" : "check that its folder exists, is writable and has space");
}

void OutputFile::put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail("write failed");
}

void OutputFile::flush() {
  if (std::fflush(file_) != 0 || std::ferror(file_) != 0) fail("write failed");
}

void OutputFile::finish() {
  flush();
  if (owned_ == nullptr) return;
  std::FILE* closing = owned_.release();
  file_ = nullptr;
  bool good = std::fclose(closing) == 0;
  if (good && written_path_ != path_) good = std::rename(written_path_.c_str(), path_.c_str()) == 0;
  if (good) return tell_on_signal(path_ + " is complete");
  const std::string why = std::strerror(errno);
  if (written_path_ != path_) std::remove(written_path_.c_str());
  fail(why);
}

}  // namespace runner::cli
