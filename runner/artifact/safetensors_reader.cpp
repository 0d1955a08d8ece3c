#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/core/error.h"

namespace runner::artifact {
namespace {

class Reader final : public TensorList {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    map();
    try {
      parse();
    } catch (...) {
      unmap();
      throw;
    }
  }
  ~Reader() override { unmap(); }

 private:
  void map() {
    const int handle = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) throw_disk_error("cannot read", path_, errno);
    struct stat status {};
    const int failed = ::fstat(handle, &status) != 0 ? errno : 0;
    if (failed == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      bytes_ = status.st_size;
      void* const start = ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ, MAP_PRIVATE, handle, 0);
      if (start != MAP_FAILED) start_ = static_cast<const char*>(start);
    }
    const int unmapped = start_ == nullptr ? errno : 0;
    ::close(handle);
    if (failed != 0) throw_disk_error("cannot read", path_, failed);
    if (!S_ISREG(status.st_mode)) throw core::RunError(path_ + " is not a safetensors file: it is not a regular file");
    if (bytes_ > 0 && start_ == nullptr) throw_disk_error("cannot map", path_, unmapped);
  }

  void unmap() {
    if (start_ != nullptr) ::munmap(const_cast<char*>(start_), static_cast<std::size_t>(bytes_));
    start_ = nullptr;
  }

  void parse() {
    const std::string_view file(start_ == nullptr ? "" : start_, static_cast<std::size_t>(bytes_));
    const std::int64_t header_bytes = safetensors_header_bytes(file, bytes_, path_);
    const std::int64_t before_data = kHeaderLengthBytes + header_bytes;
    SafetensorsHeader header = parse_safetensors_header(
        file.substr(kHeaderLengthBytes, static_cast<std::size_t>(header_bytes)), bytes_ - before_data, path_);
    metadata_ = std::move(header.metadata);
    for (auto& [tensor, begin] : header.entries) {
      tensor.data = start_ + before_data + begin;
      add(std::move(tensor));
    }
  }

  std::string path_;
  const char* start_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace

core::Result<std::unique_ptr<SafetensorsReader>> SafetensorsReader::open(const std::string& path) {
  return attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Reader>(path); });
}

}  // namespace runner::artifact
