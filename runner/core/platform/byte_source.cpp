#include "runner/core/platform/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace runner::core {
namespace {

constexpr std::int64_t kPassedAtOnce = std::int64_t{256} << 10;

}  // namespace

ByteSource::ByteSource(const std::string& path, std::int64_t begin) {
  if (is_packed(path)) {
    packed_ = open_packed(path);
    pass_over(begin);
    return;
  }
  plain_.open(path, std::ios::binary);
  if (!plain_.is_open()) problem_ = std::string("cannot read it: ") + std::strerror(errno);
  if (begin > 0) plain_.seekg(begin);
}

std::size_t ByteSource::read(char* to, std::size_t size) {
  if (packed_ != nullptr) return packed_->read(to, size);
  if (!problem_.empty()) return 0;
  plain_.read(to, static_cast<std::streamsize>(size));
  if (plain_.bad()) problem_ = std::string("cannot read it: ") + std::strerror(errno);
  return static_cast<std::size_t>(plain_.gcount());
}

void ByteSource::pass_over(std::int64_t bytes) {
  std::string passed(static_cast<std::size_t>(std::min(bytes, kPassedAtOnce)), '\0');
  while (bytes > 0) {
    const auto most = static_cast<std::size_t>(std::min(bytes, kPassedAtOnce));
    const std::size_t read = packed_->read(passed.data(), most);
    if (read == 0) return;
    bytes -= static_cast<std::int64_t>(read);
  }
}

}  // namespace runner::core
