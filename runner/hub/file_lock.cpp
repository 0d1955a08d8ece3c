#include "runner/hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"

namespace runner::hub {
namespace {

constexpr double kPoll_s = 0.2;
constexpr mode_t kForTheGroup = 0664;  // as huggingface_hub: users of one group share a cache

/// Whether the path still names the file that was opened.
bool is_at(const std::string& path, int descriptor) {
  struct stat opened = {}, there = {};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::function<void(double)>& wait, const std::function<void()>& told,
                   const std::string& variable) {
  core::make_folders(std::filesystem::path(path).parent_path().string()).value();
  bool waited = false;
  for (;;) {
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForTheGroup);
    if (descriptor_ < 0) {
      throw core::RunError("cannot create the lock " + core::escape_for_terminal(path) + ": " + std::strerror(errno),
                           "set " + variable + " to a folder that can be written");
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) {
      if (is_at(path, descriptor_)) return;
    } else if (errno == EWOULDBLOCK) {
      if (!waited && told) told();
      waited = true;
      wait(kPoll_s);
    } else if (errno != EINTR) {
      return;
    }
    close(descriptor_);
  }
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace runner::hub
