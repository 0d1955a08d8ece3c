#include "runner/artifact/io/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "runner/core/platform/files.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWriteBytesMax = 1 << 30;  // Linux writes at most 2 GiB a call

std::string system_words(int error_number) {
  std::string words = std::generic_category().message(error_number);
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words;
}

/// An interrupted call is retried.
template <typename Call>
int uninterrupted(const Call& call) {
  int status = call();
  while (status < 0 && errno == EINTR) status = call();
  return status;
}

bool is_direct(int handle) {
  const int flags = ::fcntl(handle, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0;
}

}  // namespace

void throw_disk_error(const std::string& what, const std::string& path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  std::string hint;
  if (full) hint = "free some space there, then run the same command again";
  if (error_number == EFBIG) hint = "`ulimit -f` limits the size of a file: raise it, then run the same command again";
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    hint = "check the permissions, or choose another output_dir";
  }
  throw core::RunError(what + " " + path + ": " + system_words(error_number), hint,
                       full ? core::kExitResumable : core::kExitFailed);
}

void Io::make_dir(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) throw_disk_error("cannot create folder", path, errno);
}

int Io::create(const std::string& path) {
  const int handle = uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (handle < 0) throw_disk_error("cannot create", path, errno);
  return handle;
}

void Io::write(int handle, const std::string& path, const void* data, std::int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(handle, next, static_cast<std::size_t>(std::min(bytes, kWriteBytesMax)));
    if (written < 0) {
      if (errno == EINTR) continue;
      // Sectors larger than ours, or a short write that ended off the grid: the rest goes through the page cache.
      if (errno == EINVAL && is_direct(handle) && Io::set_direct(handle, false)) continue;
      throw_disk_error("cannot write", path, errno);
    }
    next += written;
    bytes -= written;
  }
}

void Io::allocate(int handle, const std::string& path, std::int64_t bytes) {
  if (bytes <= 0) return;
  if (uninterrupted([&] { return ::fallocate(handle, 0, 0, bytes); }) != 0 && errno != EOPNOTSUPP && errno != ENOSYS &&
      errno != EINVAL) {
    throw_disk_error("cannot write", path, errno);
  }
}

bool Io::set_direct(int handle, bool on) {
  const int flags = ::fcntl(handle, F_GETFL);
  return flags >= 0 && ::fcntl(handle, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

void Io::start_writeback(int handle, std::int64_t begin, std::int64_t end) {
  ::sync_file_range(handle, begin, end - begin, SYNC_FILE_RANGE_WRITE);
}

void Io::sync_file(int handle, const std::string& path) {
  if (uninterrupted([&] { return ::fsync(handle); }) != 0) throw_disk_error("cannot write", path, errno);
}

void Io::close(int handle, const std::string& path) {
  if (::close(handle) != 0 && errno != EINTR) throw_disk_error("cannot write", path, errno);
}

void Io::sync_dir(const std::string& path) {
  const int handle = uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (handle < 0) throw_disk_error("cannot open folder", path, errno);
  // Some network file systems sync folders by themselves and refuse the call.
  const int error_number = uninterrupted([&] { return ::fsync(handle); }) == 0 || errno == EINVAL ? 0 : errno;
  ::close(handle);
  if (error_number != 0) throw_disk_error("cannot write folder", path, error_number);
}

void Io::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_disk_error("cannot rename " + from + " to", to, errno);
}

bool Io::exchange(const std::string& one, const std::string& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return false;
  throw_disk_error("cannot swap " + one + " and", other, errno);
}

void Io::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_disk_error("cannot delete", path, errno);
}

void Io::remove_dir(const std::string& path) {
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) throw_disk_error("cannot delete folder", path, errno);
}

std::int64_t Io::free_bytes(const std::string& path) {
  struct statvfs figures {};
  if (::statvfs(path.c_str(), &figures) != 0) throw_disk_error("cannot read the free space of", path, errno);
  return static_cast<std::int64_t>(figures.f_bavail) * static_cast<std::int64_t>(figures.f_frsize);
}

Io& system_io() {
  static Io io;
  return io;
}

void make_dirs(Io& io, const std::string& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  const std::string parent = fs::path(path).parent_path().string();
  make_dirs(io, parent);
  io.make_dir(path);
  io.sync_dir(parent.empty() ? "." : parent);
}

void remove_tree(Io& io, const std::string& path) {
  std::error_code error;
  if (fs::is_symlink(path, error)) return io.remove_file(path);
  const std::vector<std::string> names_there = core::list_folder(path).value();
  for (const std::string& name : names_there) {
    const std::string below = (fs::path(path) / name).string();
    if (fs::is_directory(below, error) && !fs::is_symlink(below, error)) {
      remove_tree(io, below);
    } else {
      io.remove_file(below);
    }
  }
  io.remove_dir(path);
}

}  // namespace runner::artifact
