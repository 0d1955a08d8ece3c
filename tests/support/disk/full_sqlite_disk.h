#pragma once

#include <sqlite3.h>

#include <atomic>
#include <map>
#include <mutex>

namespace tests {

/// A disk that refuses what SQLite writes to it in this process, as one without space does, once it is full. For the
/// rest of the process; construct one before the databases are opened.
class FullSqliteDisk {
 public:
  FullSqliteDisk() {
    static sqlite3_vfs shim = *system();
    shim.zName = "full-disk";
    shim.xOpen = open;
    sqlite3_vfs_register(&shim, /*makeDflt=*/1);
  }

  void fill() { is_full() = true; }
  void make_room() { is_full() = false; }
  int refused() const { return refusals(); }  ///< writes so far

 private:
  static sqlite3_vfs* system() {
    static sqlite3_vfs* const found = sqlite3_vfs_find(nullptr);
    return found;
  }
  static std::atomic<bool>& is_full() {
    static std::atomic<bool> full{false};
    return full;
  }
  static std::atomic<int>& refusals() {
    static std::atomic<int> count{0};
    return count;
  }
  using Write = int (*)(sqlite3_file*, const void*, int, sqlite3_int64);
  static Write& usual_write() {
    static Write write = nullptr;
    return write;
  }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* given) {
    const int code = system()->xOpen(system(), name, file, flags, given);
    if (code != SQLITE_OK || file->pMethods == nullptr) return code;
    static std::mutex mutex;
    static std::map<const sqlite3_io_methods*, sqlite3_io_methods> all;  // a journal has others than its database
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = all.try_emplace(file->pMethods, *file->pMethods);
    if (is_new) {
      usual_write() = at->second.xWrite;  // the same for all
      at->second.xWrite = write;
    }
    file->pMethods = &at->second;
    return code;
  }
  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
    if (!is_full()) return usual_write()(file, bytes, size, at);
    ++refusals();
    return SQLITE_FULL;
  }
};

}  // namespace tests
