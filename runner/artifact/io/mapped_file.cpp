#include "runner/artifact/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "runner/artifact/io/io.h"
#include "runner/core/error.h"

namespace runner::artifact {

MappedFile::MappedFile(const std::string& path, const char* what) : path_(path) {
  const int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) throw_disk_error("cannot read", path, errno);
  struct stat status {};
  const int failed = ::fstat(handle, &status) != 0 ? errno : 0;
  const bool has_bytes = failed == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  int unmapped = 0;
  if (has_bytes) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, handle, 0);
    if (start == MAP_FAILED) {
      unmapped = errno;
    } else {
      start_ = static_cast<const char*>(start);
      bytes_ = size;
    }
  }
  ::close(handle);
  if (failed != 0) throw_disk_error("cannot read", path, failed);
  if (!S_ISREG(status.st_mode)) throw core::RunError(path + " is not " + what + ": it is not a regular file");
  if (unmapped != 0) throw_disk_error("cannot map", path, unmapped);
}

MappedFile::~MappedFile() {
  if (bytes_ > 0) ::munmap(const_cast<char*>(start_), bytes_);
}

bool MappedFile::holds(const void* data) const {
  return !std::less<>()(data, start_) && std::less<>()(data, start_ + bytes_);
}

std::optional<FilePlace> MappedFile::place_of(const void* data) const {
  if (!holds(data)) return {};
  return FilePlace{path_, static_cast<const char*>(data) - start_};
}

void MappedFile::let_go(const void* data, std::int64_t bytes) const {
  if (bytes <= 0 || !holds(data)) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(data) - start_);
  const std::size_t first = offset / page * page;
  const std::size_t end = std::min(bytes_, offset + static_cast<std::size_t>(bytes));
  ::madvise(const_cast<char*>(start_) + first, end - first, MADV_DONTNEED);  // fails at worst to save memory
}

}  // namespace runner::artifact
