#include "runner/core/platform/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "runner/core/text/utf8.h"
#include "runner/core/units.h"

namespace runner::core {
namespace {

constexpr std::int64_t kBytesOfUnknownSize = 4095;  // a page, which is what a file under /proc gives at once
constexpr int kLinksMax = 40;                       // as Linux allows
constexpr std::string_view kBeside = ".tmp-";       // then the process and a number: where a file is written first

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  /// close() reports what a network file system could not write.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string reason(int error) {
  switch (error) {
    case ENOENT: return "file not found";
    case ENOTDIR: return "part of the path is not a folder";
    case EACCES: return "permission denied";
    case EISDIR: return "it is a folder";
    case ENOSPC: return "the disk is full";
    case EDQUOT: return "the quota of its disk is used up";
    case EFBIG: return "`ulimit -f` allows no file of this size";
    case EROFS: return "the file system is read-only";
    case ENAMETOOLONG: return "the name is too long";
    case ELOOP: return "too many levels of symbolic links";
    default: return std::strerror(error);
  }
}

Failure cannot(const std::string& verb, const std::string& path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  // Whether that resumes or begins from the start depends on the command.
  const std::string again = ", then run the same command again";
  return Failure{"cannot " + verb + " " + escape_for_terminal(path) + ": " + reason(error),
                 is_full          ? "free some space" + again
                 : error == EFBIG ? "raise the limit" + again
                                  : "",
                 is_full ? kExitResumable : kExitFailed};
}

/// 0, or what went wrong.
int write_all(int file, const std::string& content) {
  for (std::size_t written = 0; written < content.size();) {
    const ssize_t got = ::write(file, content.data() + written, content.size() - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    written += static_cast<std::size_t>(got);
  }
  return 0;
}

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// The open file of this process that /dev/stdout, /dev/fd/N and the like name; -1 for any other path.
int descriptor_named(const std::filesystem::path& path) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::canonical(path.parent_path(), failed);
  if (failed || folder != "/proc/" + std::to_string(::getpid()) + "/fd") return -1;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

Failure not_a_file(const std::string& path) {
  return Failure{"cannot read " + escape_for_terminal(path) + ": it is not a regular file", ""};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::int64_t bytes_max) {
  if (path.find('\0') != std::string::npos) return Failure{"cannot read a file with a NUL byte in its name", ""};
  // O_NONBLOCK: a FIFO must be refused, not waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) return cannot("read", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return cannot("read", path, errno);
  if (S_ISDIR(info.st_mode)) return cannot("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) return not_a_file(path);
  const auto too_large = [&](std::int64_t size) {
    return Failure{"cannot read " + escape_for_terminal(path) + ": it holds " + format_bytes(size) + ", the limit is " +
                       format_bytes(bytes_max),
                   ""};
  };
  if (info.st_size > bytes_max) return too_large(info.st_size);

  // The size is only a guess: files under /proc report 0, and a file may grow while it is read.
  std::string content;
  content.resize(static_cast<std::size_t>(info.st_size > 0 ? info.st_size : kBytesOfUnknownSize) + 1);
  std::size_t filled = 0;
  while (true) {
    if (filled == content.size()) content.resize(content.size() * 2);
    const ssize_t got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (static_cast<std::int64_t>(filled) > bytes_max) return too_large(static_cast<std::int64_t>(filled));
  }
  content.resize(filled);
  return content;
}

Result<void> check_is_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  return S_ISDIR(info.st_mode) ? cannot("read", path, EISDIR) : not_a_file(path);
}

bool is_temporary_file(std::string_view name) {
  const std::size_t at = name.rfind(kBeside);
  if (at == std::string_view::npos) return false;
  const std::string_view numbers = name.substr(at + kBeside.size());
  return std::count(numbers.begin(), numbers.end(), '-') == 1 &&
         numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

Result<void> write_file_atomic(const std::string& path, const std::string& content) {
  static std::atomic<unsigned> counter{0};
  const std::string folder = folder_of(path);
  std::string beside;
  // In a container every restart may have the same process id: a killed process may have left a file of this name.
  const auto open_beside = [&] {
    beside = path + std::string(kBeside) + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    return ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  };
  const auto fail = [&](int error) {
    ::unlink(beside.c_str());
    return cannot("write", path, error);
  };
  int opened = open_beside();
  while (opened < 0 && errno == EEXIST) opened = open_beside();
  Descriptor file(opened);
  if (!file.ok()) return cannot("write", path, errno == ENOENT ? ENOTDIR : errno);
  struct stat earlier {};
  if (::stat(path.c_str(), &earlier) == 0) {
    if (S_ISDIR(earlier.st_mode)) return fail(EISDIR);
    if (!S_ISREG(earlier.st_mode)) {
      ::unlink(beside.c_str());
      return Failure{"cannot write " + escape_for_terminal(path) + ": it is not a regular file", ""};
    }
    if (::fchmod(file.get(), earlier.st_mode & 07777) != 0) return fail(errno);
  }
  if (const int error = write_all(file.get(), content); error != 0) return fail(error);
  if (::fsync(file.get()) != 0) return fail(errno);
  if (!file.close()) return fail(errno);
  if (::rename(beside.c_str(), path.c_str()) != 0) return fail(errno);
  const Descriptor parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems refuse fsync on a folder (EINVAL); the rename is as safe there as it gets.
  if (parent.ok() && ::fsync(parent.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return cannot("write", path, errno);
  return {};
}

Result<OutputTarget> output_target(const std::string& path) {
  namespace fs = std::filesystem;
  OutputTarget target{path};
  struct stat info {};
  for (int links = 0;; ++links) {
    if (links > kLinksMax) return cannot("write", path, ELOOP);
    target.descriptor = descriptor_named(target.path);
    if (target.descriptor >= 0) {
      target.is_in_place = true;
      return target;
    }
    if (::lstat(target.path.c_str(), &info) != 0) {
      if (errno != ENOENT) return cannot("write", path, errno);
      return target;  // it, or what the links lead to, is made
    }
    if (!S_ISLNK(info.st_mode)) break;
    std::error_code failed;
    const fs::path next = fs::read_symlink(target.path, failed);
    if (failed) return cannot("write", path, failed.value());
    target.path = (fs::path(target.path).parent_path() / next).string();
  }
  if (S_ISDIR(info.st_mode)) return cannot("write", path, EISDIR);
  target.is_in_place = !S_ISREG(info.st_mode);
  // A redirected file continues at its position: `>>` keeps its content.
  struct stat standard {};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::fstat(descriptor, &standard) != 0 || !is_same_file(standard, info)) continue;
    target.is_in_place = true;
    target.descriptor = descriptor;
    break;
  }
  return target;
}

Result<int> open_in_place(const OutputTarget& target) {
  const int file = target.descriptor >= 0 ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0)
                                          : ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return cannot("write", target.path, errno);
  return file;
}

Result<void> write_output(const std::string& path, const std::string& content) {
  const Result<OutputTarget> target = output_target(path);
  if (!target) return target.failure();
  if (!target.value().is_in_place) return write_file_atomic(target.value().path, content);
  const Result<int> opened = open_in_place(target.value());
  if (!opened) return opened.failure();
  Descriptor file(opened.value());
  if (const int error = write_all(file.get(), content); error != 0) return cannot("write", path, error);
  if (!file.close()) return cannot("write", path, errno);
  return {};
}

Result<void> make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return cannot("create the folder", path, error.value());
  return {};
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr && errno == ENOENT) return names;
  if (folder == nullptr) return cannot("read", path, errno);
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno == EINTR) continue;
    if (entry == nullptr && errno != 0) return cannot("read", path, errno);
    if (entry == nullptr) break;
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace runner::core
