#include "runner/artifact/file_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runner/artifact/io/aligned_bytes.h"
#include "runner/artifact/io/checksum.h"
#include "runner/artifact/io/io.h"
#include "runner/core/error.h"

namespace runner::artifact {
namespace {

constexpr std::int64_t kPieceBytes = 1 << 20;        // hashed while still in the second-level cache
constexpr std::int64_t kDirectPieceBytes = 8 << 20;  // the disk is busy for longer than a call costs
constexpr std::int64_t kMappedBytes = 16 << 20;      // at a time, and of the smallest file that is worth it

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

void refuse_other_size(const struct stat& status, const std::string& path, const FileEntry& recorded) {
  if (!S_ISREG(status.st_mode)) throw core::RunError(path + " is not a regular file");
  if (status.st_size == recorded.bytes) return;
  throw core::RunError(path + " holds " + grouped(status.st_size) + " bytes, its manifest says " +
                       grouped(recorded.bytes));
}

/// Closes at the end of scope.
struct Handle {
  int value;
  ~Handle() {
    if (value >= 0) ::close(value);
  }
};

void refuse_other_checksum(const Checksum& checksum, const std::string& path, const FileEntry& recorded) {
  if (checksum.text() == recorded.checksum) return;
  throw core::RunError(path + " does not match its checksum in the manifest: it was changed or damaged");
}

/// Open for reading, a regular file of the recorded size; -1 and the Failure's words as RunError otherwise.
int open_recorded(const std::string& path, const FileEntry& recorded) {
  Handle file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0 && errno == ENOENT) throw core::RunError(path + " is missing");
  if (file.value < 0) throw_disk_error("cannot read", path, errno);
  struct stat status {};
  if (::fstat(file.value, &status) != 0) throw_disk_error("cannot read", path, errno);
  refuse_other_size(status, path, recorded);
  return std::exchange(file.value, -1);
}

bool set_direct_reads(int handle, bool on) {
  const int flags = ::fcntl(handle, F_GETFL);
  return flags >= 0 && ::fcntl(handle, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

/// The checksum of what the page cache has, or gets, without a copy: twice as fast as reading. "" when the kernel
/// cannot say beforehand whether all of it can be read; then reading gives the reason.
std::string mapped_checksum(int handle, std::int64_t bytes) {
  Checksum checksum;
  for (std::int64_t at = 0; at < bytes; at += kMappedBytes) {
    const auto size = static_cast<std::size_t>(std::min(kMappedBytes, bytes - at));
    void* const piece = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, handle, at);
    if (piece == MAP_FAILED) return "";
    const bool readable = ::madvise(piece, size, MADV_POPULATE_READ) == 0;
    if (readable) checksum.update(piece, static_cast<std::int64_t>(size));
    ::munmap(piece, size);
    if (!readable) return "";
  }
  return checksum.text();
}

}  // namespace

core::Result<void> check_size(const std::string& path, const FileEntry& recorded) {
  struct stat status {};
  const int error_number = ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  if (error_number == ENOENT) return core::Failure{path + " is missing", ""};
  return attempt([&] {
    if (error_number != 0) throw_disk_error("cannot read", path, error_number);
    refuse_other_size(status, path, recorded);
  });
}

core::Result<void> verify_file(const std::string& path, const FileEntry& recorded, const CheckOptions& options) {
  return attempt([&] {
    const Handle file{open_recorded(path, recorded)};
    if (!options.from_disk && options.throttle == nullptr && recorded.bytes >= kMappedBytes &&
        mapped_checksum(file.value, recorded.bytes) == recorded.checksum) {
      return;
    }
    bool direct = options.from_disk && recorded.bytes >= kDirectBytesMin && set_direct_reads(file.value, true);
    AlignedBytes piece;
    const std::int64_t largest = direct ? kDirectPieceBytes : kPieceBytes;
    if (!piece.reserve_at_most(std::min(std::max<std::int64_t>(recorded.bytes, 1), largest))) {
      throw core::RunError("cannot read " + path + ": out of memory");
    }
    Checksum checksum;
    for (std::int64_t left = recorded.bytes; left > 0;) {
      const ssize_t count = ::read(file.value, piece.data(), static_cast<std::size_t>(piece.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EINVAL && direct) {
        direct = false;
        set_direct_reads(file.value, false);
        continue;
      }
      if (count < 0) throw_disk_error("cannot read", path, errno);
      if (count == 0) break;
      checksum.update(piece.data(), count);
      left -= count;
      if (options.throttle != nullptr) options.throttle->pause_after(count);
    }
    refuse_other_checksum(checksum, path, recorded);
  });
}

core::Result<void> read_verified(const std::string& path, const FileEntry& recorded, FileSink& keeper) {
  return attempt([&] {
    const Handle file{open_recorded(path, recorded)};
    ::posix_fadvise(file.value, 0, 0, POSIX_FADV_SEQUENTIAL);
    Checksum checksum;
    std::span<char> room;
    for (std::int64_t left = recorded.bytes; left > 0;) {
      if (room.empty()) room = keeper.buffer_for(left);
      const ssize_t count = ::read(file.value, room.data(), std::min<std::size_t>(room.size(), kPieceBytes));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_disk_error("cannot read", path, errno);
      if (count == 0) break;
      checksum.update(room.data(), count);
      room = room.subspan(static_cast<std::size_t>(count));
      left -= count;
    }
    refuse_other_checksum(checksum, path, recorded);
  });
}

}  // namespace runner::artifact
