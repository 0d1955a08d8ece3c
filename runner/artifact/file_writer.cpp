#include "runner/artifact/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace runner::artifact {
namespace {

constexpr std::int64_t kGatheredBytesMax = 1 << 20;
constexpr std::int64_t kChunkBytes = 1 << 20;  // hashed and written while still in the second-level cache
constexpr std::int64_t kWritebackBytes = 16 << 20;

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

FileWriter::FileWriter(Io& io, std::string path) : io_(io), path_(std::move(path)), handle_(io_.create(path_)) {
  gathered_.reserve(kGatheredBytesMax);
}

FileWriter::~FileWriter() {
  if (handle_ >= 0) ::close(handle_);
}

void FileWriter::append(const void* data, std::int64_t bytes) {
  const char* next = static_cast<const char*>(data);
  if (static_cast<std::int64_t>(gathered_.size()) + bytes > kGatheredBytesMax) flush();
  if (bytes < kGatheredBytesMax) {
    gathered_.insert(gathered_.end(), next, next + bytes);
    return;
  }
  while (bytes > 0) {
    const std::int64_t piece = std::min(bytes, kChunkBytes);
    write_out(next, piece);
    next += piece;
    bytes -= piece;
  }
}

void FileWriter::flush() {
  write_out(gathered_.data(), static_cast<std::int64_t>(gathered_.size()));
  gathered_.clear();
}

void FileWriter::write_out(const char* data, std::int64_t bytes) {
  if (bytes == 0) return;
  checksum_.update(data, bytes);
  io_.write(handle_, path_, data, bytes);
  written_ += bytes;
  if (written_ - started_ >= kWritebackBytes) {
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

core::Result<void> check_size(const std::string& path, const FileEntry& recorded) {
  struct stat status {};
  const int error_number = ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  if (error_number == ENOENT) return core::Failure{path + " is missing", ""};
  return attempt([&] {
    if (error_number != 0) throw_disk_error("cannot read", path, error_number);
    refuse_other_size(status, path, recorded);
  });
}

core::Result<void> verify_file(const std::string& path, const FileEntry& recorded) {
  const Handle file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0 && errno == ENOENT) return core::Failure{path + " is missing", ""};
  return attempt([&] {
    if (file.value < 0) throw_disk_error("cannot read", path, errno);
    struct stat status {};
    if (::fstat(file.value, &status) != 0) throw_disk_error("cannot read", path, errno);
    refuse_other_size(status, path, recorded);
    Checksum checksum;
    std::vector<char> piece(static_cast<std::size_t>(kChunkBytes));
    for (std::int64_t left = recorded.bytes; left > 0;) {
      const ssize_t count = ::read(file.value, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
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
