#include "runner/artifact/file_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace runner::artifact {
namespace {

constexpr std::int64_t kBufferedChunkBytes = 1 << 20;  // hashed and written while still in the second-level cache
constexpr std::int64_t kDirectChunkBytes = 8 << 20;    // the disk is busy for longer than a call costs
constexpr std::int64_t kDirectBytesMin = 1 << 20;      // a smaller file is done sooner through the page cache
constexpr std::int64_t kWritebackBytes = 16 << 20;
constexpr std::int64_t kMappedBytes = 16 << 20;  // at a time, and of the smallest file that is worth it

bool is_aligned(const char* data) { return reinterpret_cast<std::uintptr_t>(data) % kDirectAlignment == 0; }

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

void refuse_other_size(const struct stat& status, const std::string& path, const FileEntry& recorded) {
  if (!S_ISREG(status.st_mode)) throw core::RunError(path + " is no regular file");
  if (status.st_size == recorded.bytes) return;
  throw core::RunError(path + " holds " + grouped(status.st_size) + " bytes, its manifest says " +
                       grouped(recorded.bytes));
}

/// Closes when it goes out of sight.
struct Handle {
  int value;
  ~Handle() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

FileWriter::FileWriter(Io& io, std::string path, const Options& options)
    : io_(io), path_(std::move(path)), handle_(io_.create(path_)) {
  const bool large = options.bytes >= kDirectBytesMin;
  if (large) io_.allocate(handle_, path_, options.bytes);
  direct_ = options.direct && large && io_.set_direct(handle_, true);
  const std::int64_t chunk = direct_ ? kDirectChunkBytes : kBufferedChunkBytes;
  if (!gathered_.reserve(options.bytes > 0 ? std::min(chunk, options.bytes) : chunk)) {
    throw core::RunError("cannot write " + path_ + ": no memory for " + std::to_string(chunk) + " bytes");
  }
}

FileWriter::~FileWriter() {
  if (handle_ >= 0) ::close(handle_);
}

void FileWriter::append(const void* data, std::int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    // Straight from its place, unless direct writes could not take it from there.
    std::int64_t straight = 0;
    if (gathered_bytes_ == 0 && bytes >= kBufferedChunkBytes && (!direct_ || is_aligned(next))) {
      straight = std::min(bytes, direct_ ? kDirectChunkBytes : kBufferedChunkBytes);
      if (direct_) straight -= straight % kDirectAlignment;
    }
    if (straight > 0) {
      write_out(next, straight);
    } else {
      straight = std::min(bytes, gathered_.size() - gathered_bytes_);
      gather(next, straight);
    }
    next += straight;
    bytes -= straight;
  }
}

void FileWriter::gather(const char* data, std::int64_t bytes) {
  std::memcpy(gathered_.data() + gathered_bytes_, data, static_cast<std::size_t>(bytes));
  gathered_bytes_ += bytes;
  if (gathered_bytes_ == gathered_.size()) flush();
}

void FileWriter::flush() {
  write_out(gathered_.data(), gathered_bytes_);
  gathered_bytes_ = 0;
}

/// Direct: memory and place are on the grid; only the last piece may end off it, and takes the page cache.
void FileWriter::write_out(const char* data, std::int64_t bytes) {
  if (bytes == 0) return;
  checksum_.update(data, bytes);
  const std::int64_t tail = direct_ ? bytes % kDirectAlignment : 0;
  if (bytes > tail) io_.write(handle_, path_, data, bytes - tail);
  if (tail > 0) {
    direct_ = false;
    io_.set_direct(handle_, false);
    io_.write(handle_, path_, data + bytes - tail, tail);
  }
  written_ += bytes;
  if (!direct_ && written_ - started_ >= kWritebackBytes) {
    io_.start_writeback(handle_, started_, written_);
    started_ = written_;
  }
}

FileEntry FileWriter::finish(const std::string& name) {
  flush();
  io_.sync_file(handle_, path_);
  io_.close(std::exchange(handle_, -1), path_);
  return {name, written_, checksum_.text()};
}

namespace {

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

core::Result<void> verify_file(const std::string& path, const FileEntry& recorded, bool from_disk) {
  return attempt([&] {
    const Handle file{open_recorded(path, recorded)};
    if (!from_disk && recorded.bytes >= kMappedBytes &&
        mapped_checksum(file.value, recorded.bytes) == recorded.checksum)
      return;
    bool direct = from_disk && recorded.bytes >= kDirectBytesMin && set_direct_reads(file.value, true);
    AlignedBytes piece;
    if (!piece.reserve(
            std::min(std::max<std::int64_t>(recorded.bytes, 1), direct ? kDirectChunkBytes : kBufferedChunkBytes))) {
      throw core::RunError("cannot read " + path + ": no memory for a piece of it");
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
    }
    if (checksum.text() != recorded.checksum) {
      throw core::RunError(path + " does not match its checksum in the manifest: it was changed or damaged");
    }
  });
}

}  // namespace runner::artifact
