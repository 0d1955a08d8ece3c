#include "runner/cli/data/token_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runner/core/error.h"

namespace runner::cli {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

}  // namespace

OutputLock::OutputLock(const std::string& output) : path_(output + ".lock") {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0) {
    throw core::RunError("cannot write " + output + ": " + std::strerror(errno),
                         "check that its folder exists, is writable and has space", core::kExitUsage);
  }
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > 0) {
    close(descriptor_);
    throw core::RunError(path_ + " is not a file of roux", "move it away, or name another output", core::kExitUsage);
  }
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  close(descriptor_);
  throw core::RunError(output + " is being written by another roux", "wait for it to end, or name another output",
                       core::kExitUsage);
}

OutputLock::~OutputLock() {
  std::remove(path_.c_str());
  close(descriptor_);
}

std::string numpy_header(std::int64_t tokens, const TokenLayout& layout) {
  constexpr std::size_t kBegin = 10;  // magic, version, length
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  const auto rest = static_cast<std::size_t>(TokenLayout::kNumpyHeader) - kBegin;
  header += static_cast<char>(rest);
  header += '\0';
  header += std::string("{'descr': '<u") + (layout.token_bytes == 2 ? "2" : "4") +
            "', 'fortran_order': False, 'shape': (" + std::to_string(tokens) + ",), }";
  header.resize(static_cast<std::size_t>(TokenLayout::kNumpyHeader) - 1, ' ');
  return header + '\n';
}

TokenFile::TokenFile(TokenLayout layout) : layout_(layout) {}

TokenFile::~TokenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void TokenFile::fail(const char* what) const {
  throw core::RunError("cannot " + std::string(what) + " " + path_ + ": " + std::strerror(errno),
                       errno == EEXIST ? "move it away, or name another output"
                                       : "check that its folder exists, is writable and has space");
}

void TokenFile::create(const std::string& path) {
  path_ = path;
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("write");
  tokens_ = 0;
  begin();
}

void TokenFile::resume(const std::string& path, std::int64_t tokens) {
  path_ = path;
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor_ < 0 && errno == ENOENT) {
    throw core::RunError(path_ + " is not there any more", "add --force to tokenize everything again");
  }
  if (descriptor_ < 0) fail("write");
  const std::int64_t kept = tokens == 0 ? 0 : layout_.header_bytes() + tokens * layout_.token_bytes;
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail("read");
  if (status.st_size < kept) {
    throw core::RunError(path_ + " is shorter than it was", "add --force to tokenize everything again");
  }
  if (ftruncate(descriptor_, kept) != 0) fail("write");
  if (lseek(descriptor_, 0, SEEK_END) < 0) fail("write");
  tokens_ = tokens;
  if (tokens == 0) begin();
}

void TokenFile::begin() {
  buffer_.reserve(kBuffer);
  if (!layout_.numpy) return;
  const std::string header = numpy_header(0, layout_);
  write_all(header.data(), header.size());
}

void TokenFile::append(std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    const auto value = static_cast<std::uint32_t>(id);
    for (std::int64_t byte = 0; byte < layout_.token_bytes; ++byte) {
      buffer_.push_back(static_cast<char>((value >> (8 * byte)) & 0xFFU));
    }
    if (buffer_.size() >= kBuffer - 4) flush();
  }
  tokens_ += static_cast<std::int64_t>(ids.size());
}

void TokenFile::write_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(descriptor_, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

void TokenFile::flush() {
  write_all(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void TokenFile::sync() {
  flush();
  if (fsync(descriptor_) != 0) fail("write");
}

void TokenFile::finish() {
  flush();
  if (layout_.numpy) {
    const std::string header = numpy_header(tokens_, layout_);
    if (pwrite(descriptor_, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) fail("write");
  }
  sync();
  close(std::exchange(descriptor_, -1));
  tokens_ = 0;
}

void TokenFile::discard() {
  buffer_.clear();
  close(std::exchange(descriptor_, -1));
  std::remove(path_.c_str());
}

}  // namespace runner::cli
