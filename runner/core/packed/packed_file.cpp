#include "runner/core/packed/packed_file.h"

#include <cerrno>
#include <cstring>

#include "runner/core/packed/gzip_file.h"
#include "runner/core/packed/zstd_file.h"

namespace runner::core {
namespace {

constexpr std::size_t kPackedBytes = std::size_t{128} << 10;
constexpr std::string_view kGzip = ".gz", kZstd = ".zst";

}  // namespace

PackedFile::PackedFile(const std::string& path) : file_(path, std::ios::binary), packed_(kPackedBytes) {
  if (!file_) problem_ = std::string("cannot read it: ") + std::strerror(errno);
}

std::string_view PackedFile::next_packed() {
  if (!problem_.empty()) return {};
  file_.read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
  if (file_.bad()) {
    problem_ = std::string("cannot read it: ") + std::strerror(errno);
    return {};
  }
  return {packed_.data(), static_cast<std::size_t>(file_.gcount())};
}

bool is_packed(std::string_view path) { return path.ends_with(kGzip) || path.ends_with(kZstd); }

std::string_view without_packed_ending(std::string_view path) {
  for (const std::string_view ending : {kGzip, kZstd}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return path;
}

std::unique_ptr<PackedFile> open_packed(const std::string& path) {
  if (path.ends_with(kZstd)) return std::make_unique<ZstdFile>(path);
  return std::make_unique<GzipFile>(path);
}

}  // namespace runner::core
