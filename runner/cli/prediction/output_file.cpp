#include "runner/cli/prediction/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runner/core/error.h"

namespace runner::cli {

namespace fs = std::filesystem;

OutputFile::OutputFile(const std::string& path) : path_(path), owned_(nullptr, std::fclose), file_(stdout) {
  if (path.empty()) {
    tell_on_signal("the output is not complete");
    return;
  }
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  if (fs::is_directory(path, ignored)) {
    throw core::RunError("cannot write " + path + ": it is a folder", "name a file in it", core::kExitUsage);
  }
  const core::OutputTarget target = core::output_target(path).value();
  if (!is_new && target.descriptor < 0 && access(path.c_str(), W_OK) != 0) fail(std::strerror(errno));
  if (target.is_in_place) {
    tell_on_signal(path + " is not complete");
    owned_.reset(fdopen(core::open_in_place(target).value(), "w"));
  } else {
    draft_.emplace(artifact::system_io(), path);
    guard_.emplace(draft_->path());
    tell_on_signal(path + (is_new ? " was not written" : " is as it was before"));
    owned_.reset(std::fopen(draft_->path().c_str(), "w"));
  }
  if (owned_ == nullptr) fail(std::strerror(errno));
  file_ = owned_.get();
}

OutputFile::~OutputFile() = default;

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
  if (std::fclose(closing) != 0) fail(std::strerror(errno));
  if (draft_) draft_->publish();
  tell_on_signal(path_ + " is complete");
}

}  // namespace runner::cli
