#include "trackers/wandb_file.h"

#include <zlib.h>

#include <algorithm>

namespace trackers {
namespace {

constexpr std::string_view kFileHeader(":W&B\xe1\xbe\0", 7);
constexpr std::int64_t kBlockBytes = 32'768;
constexpr std::int64_t kFrameBytes = 7;  // checksum, length, kind
enum Kind : char { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::string frame(Kind kind, std::string_view part) {
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(&kind), 1);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift & 0xff);
  bytes += static_cast<char>(part.size() & 0xff);
  bytes += static_cast<char>(part.size() >> 8);
  bytes += kind;
  bytes += part;
  return bytes;
}

}  // namespace

WandbFile::WandbFile(const std::string& path, std::int64_t keep_bytes)
    : file_(path, keep_bytes), offset_(file_.bytes()) {
  if (offset_ == 0) append_bytes(kFileHeader);
}

void WandbFile::append(std::string_view record) {
  bool is_first = true;
  do {
    std::int64_t room = kBlockBytes - offset_ % kBlockBytes;
    if (room < kFrameBytes) {
      append_bytes(std::string(static_cast<std::size_t>(room), '\0'));
      room = kBlockBytes;
    }
    const auto part = record.substr(0, static_cast<std::size_t>(room - kFrameBytes));
    record.remove_prefix(part.size());
    append_bytes(frame(record.empty() ? (is_first ? kWhole : kLast) : (is_first ? kFirst : kMiddle), part));
    is_first = false;
  } while (!record.empty());
}

void WandbFile::append_bytes(std::string_view bytes) {
  file_.append(bytes);
  offset_ += static_cast<std::int64_t>(bytes.size());
}

}  // namespace trackers
