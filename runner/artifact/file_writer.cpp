#include "runner/artifact/file_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace runner::artifact {
namespace {

constexpr std::int64_t kBufferedChunkBytes = 1 << 20;  // hashed and written while still in the second-level cache
constexpr std::int64_t kDirectChunkBytes = 8 << 20;    // the disk is busy for longer than a call costs
constexpr std::int64_t kWritebackBytes = 16 << 20;

bool is_aligned(const char* data) { return reinterpret_cast<std::uintptr_t>(data) % kDirectAlignment == 0; }

}  // namespace

FileWriter::FileWriter(Io& io, std::string path, const Options& options)
    : io_(io), path_(std::move(path)), handle_(io_.create(path_)), throttle_(options.throttle) {
  const bool large = options.bytes >= kDirectBytesMin;
  if (large) io_.allocate(handle_, path_, options.bytes);
  direct_ = options.direct && large && io_.set_direct(handle_, true);
  chunk_ = direct_ ? kDirectChunkBytes : kBufferedChunkBytes;
  if (!gathered_.reserve_at_most(options.bytes > 0 ? std::min(chunk_, options.bytes) : chunk_)) {
    throw core::RunError("cannot write " + path_ + ": out of memory");
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
      straight = std::min(bytes, chunk_);
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
  if (throttle_ != nullptr) throttle_->pause_after(bytes);
}

FileEntry FileWriter::finish(const std::string& name) {
  flush();
  io_.sync_file(handle_, path_);
  io_.close(std::exchange(handle_, -1), path_);
  return {name, written_, checksum_.text()};
}

}  // namespace runner::artifact
