#pragma once

#include <cstdint>
#include <string>

#include "runner/core/result.h"

namespace runner::artifact {

/// The disk operations of a checkpoint, one call for each that can fail or be the last before a crash. All changes of
/// the disk go through here; tests pass one that fails or stops at the k-th call.
///
/// Errors  RunError with the path and the system's error; a full disk has the exit status for "resumable".
class Io {
 public:
  virtual ~Io() = default;
  virtual void make_dir(const std::string& path);
  /// Creates a file that must not exist yet; the handle is for write, sync and close.
  virtual int create(const std::string& path);
  /// All of the bytes, in as many calls to the system as it takes.
  virtual void write(int handle, const std::string& path, const void* data, std::int64_t bytes);
  /// Reserves room for a file of that size, to detect a full disk before writing; the file then reads as zeros. Does
  /// nothing if the file system cannot.
  virtual void allocate(int handle, const std::string& path, std::int64_t bytes);
  /// Turns direct writes (O_DIRECT) on or off: they need memory, offset and size at multiples of kDirectAlignment.
  /// False, without effect, if the file system cannot.
  virtual bool set_direct(int handle, bool on);
  /// A hint only: the disk may start on what was written up to `end`, so that sync_file has less to wait for.
  virtual void start_writeback(int handle, std::int64_t begin, std::int64_t end);
  virtual void sync_file(int handle, const std::string& path);
  virtual void close(int handle, const std::string& path);
  virtual void sync_dir(const std::string& path);
  virtual void rename(const std::string& from, const std::string& to);
  /// Swaps two folders atomically; false, without effect, if the file system cannot.
  virtual bool exchange(const std::string& one, const std::string& other);
  virtual void remove_file(const std::string& path);
  virtual void remove_dir(const std::string& path);
  /// Bytes that an ordinary user may still write below `path`.
  virtual std::int64_t free_bytes(const std::string& path);
};

Io& system_io();

inline constexpr std::int64_t kDirectAlignment = 4096;    ///< for all common disks; larger sectors refuse direct writes
inline constexpr std::int64_t kDirectBytesMin = 1 << 20;  ///< a smaller file is faster through the page cache

/// RunError with `what` ("cannot write", ...), the path and the system's words for `error_number`.
[[noreturn]] void throw_disk_error(const std::string& what, const std::string& path, int error_number);

/// Like `mkdir -p`, with every new entry made durable.
void make_dirs(Io& io, const std::string& path);

/// Removes a folder with all it holds; links, it itself among them, are removed and not followed.
void remove_tree(Io& io, const std::string& path);

using core::attempt;

}  // namespace runner::artifact
