#pragma once

#include <functional>
#include <string>

namespace runner::hub {

/// A lock between processes, the same as Python's `filelock` takes: flock(2) on a file that may be removed meanwhile.
class FileLock {
 public:
  /// Waits with `wait` until the lock is free; calls `told` once before that. On a file system without flock it
  /// returns without a lock: whoever downloads checks what it got. RunError when the file cannot be created, with the
  /// variable that names another folder.
  FileLock(const std::string& path, const std::function<void(double)>& wait, const std::function<void()>& told,
           const std::string& variable = "HF_HUB_CACHE");
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace runner::hub
