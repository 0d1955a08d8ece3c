#include "runner/artifact/io.h"

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

#include "runner/core/files.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kWriteBytesMax = 1 << 30;  // Linux writes at most 2 GiB a call

std::string system_words(int error_number) {
  std::string words = std::generic_category().message(error_number);
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words;
}

}  // namespace

void throw_disk_error(const std::string& what, const std::string& path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  std::string hint;
  if (full) hint = "free some space there, then run the same command again";
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    hint = "check who may write there, or choose another output_dir";
  }
  throw core::RunError(what + " " + path + ": " + system_words(error_number), hint,
                       full ? core::kExitResumable : core::kExitFailed);
}

void Io::make_dir(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) throw_disk_error("cannot create folder", path, errno);
}

int Io::create(const std::string& path) {
  const int handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (handle < 0) throw_disk_error("cannot create", path, errno);
  return handle;
}

void Io::write(int handle, const std::string& path, const void* data, std::int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(handle, next, static_cast<std::size_t>(std::min(bytes, kWriteBytesMax)));
    if (written < 0) {
      if (errno == EINTR) continue;
      throw_disk_error("cannot write", path, errno);
    }
    next += written;
    bytes -= written;
  }
}

void Io::start_writeback(int handle, std::int64_t begin, std::int64_t end) {
  ::sync_file_range(handle, begin, end - begin, SYNC_FILE_RANGE_WRITE);
}

void Io::sync_file(int handle, const std::string& path) {
  if (::fsync(handle) != 0) throw_disk_error("cannot write", path, errno);
}

void Io::close(int handle, const std::string& path) {
  if (::close(handle) != 0 && errno != EINTR) throw_disk_error("cannot write", path, errno);
}

void Io::sync_dir(const std::string& path) {
  const int handle = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) throw_disk_error("cannot open folder", path, errno);
  // Some network file systems keep folders in order by themselves and refuse the call.
  const int error_number = ::fsync(handle) == 0 || errno == EINVAL ? 0 : errno;
  ::close(handle);
  if (error_number != 0) throw_disk_error("cannot write folder", path, error_number);
}

void Io::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_disk_error("cannot rename " + from + " to", to, errno);
}

bool Io::exchange(const std::string& one, const std::string& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return false;
  throw_disk_error("cannot put " + one + " in the place of", other, errno);
}

void Io::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_disk_error("cannot delete", path, errno);
}

void Io::remove_dir(const std::string& path) {
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) throw_disk_error("cannot delete folder", path, errno);
}

std::int64_t Io::free_bytes(const std::string& path) {
  struct statvfs figures {};
  if (::statvfs(path.c_str(), &figures) != 0) throw_disk_error("cannot ask for the free space of", path, errno);
  return static_cast<std::int64_t>(figures.f_bavail) * static_cast<std::int64_t>(figures.f_frsize);
}

Io& system_io() {
  static Io io;
  return io;
}

void remove_tree(Io& io, const std::string& path) {
  std::error_code error;
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
