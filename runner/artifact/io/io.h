#pragma once

#include <cstdint>
#include <string>

#include "runner/core/result.h"

namespace runner::artifact {

/// The disk as a checkpoint uses it, one call for each thing that can fail or be the last one before a crash.
/// Everything that changes the disk goes through here; tests pass one that fails or stops at the k-th call.
///
/// Errors  RunError that names the path and what the disk said; a full disk leaves with the exit code for "resumable".
class Io {
 public:
  virtual ~Io() = default;
  virtual void make_dir(const std::string& path);
  /// Creates a file that must not exist yet; the handle is for write, sync and close.
  virtual int create(const std::string& path);
  /// All of the bytes, in as many calls to the system as it takes.
  virtual void write(int handle, const std::string& path, const void* data, std::int64_t bytes);
  /// Room for a file of that size, so that a full disk says so before anything is written; the file then reads as
  /// zeros. Nothing where the file system cannot.
  virtual void allocate(int handle, const std::string& path, std::int64_t bytes);
  /// Turns writes past the page cache on or off: they need memory, place and size at multiples of kDirectAlignment.
  /// False where the file system cannot, with nothing changed.
  virtual bool set_direct(int handle, bool on);
  /// A hint only: the disk may start on what was written up to `end`, so that sync_file has less to wait for.
  virtual void start_writeback(int handle, std::int64_t begin, std::int64_t end);
  virtual void sync_file(int handle, const std::string& path);
  virtual void close(int handle, const std::string& path);
  virtual void sync_dir(const std::string& path);
  virtual void rename(const std::string& from, const std::string& to);
  /// Swaps two folders in one step; false where the file system cannot, with nothing changed.
  virtual bool exchange(const std::string& one, const std::string& other);
  virtual void remove_file(const std::string& path);
  virtual void remove_dir(const std::string& path);
  /// What an ordinary user may still write below `path`.
  virtual std::int64_t free_bytes(const std::string& path);
};

Io& system_io();

inline constexpr std::int64_t kDirectAlignment = 4096;  ///< of every disk in use; larger sectors refuse, and are asked
inline constexpr std::int64_t kDirectBytesMin = 1 << 20;  ///< a smaller file is done sooner through the page cache

/// RunError with `what` ("cannot write", ...), the path and the system's words for `error_number`.
[[noreturn]] void throw_disk_error(const std::string& what, const std::string& path, int error_number);

/// Like `mkdir -p`, with every new entry made durable.
void make_dirs(Io& io, const std::string& path);

/// Removes a folder with all it holds; links, it itself among them, are removed and not followed.
void remove_tree(Io& io, const std::string& path);

using core::attempt;

}  // namespace runner::artifact
