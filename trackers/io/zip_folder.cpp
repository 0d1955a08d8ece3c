// PKWARE's APPNOTE 6.3: local headers, stored data, the central directory and its end; without zip64.
#include "trackers/io/zip_folder.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "runner/core/platform/files.h"
#include "trackers/io/owned_folder.h"
#include "trackers/io/tracker_data.h"

namespace trackers {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytesMax = 0xffff'ffff;
constexpr std::size_t kEntriesMax = 0xffff, kPieceBytes = 1 << 20;
constexpr int kVersion = 20, kUtf8Names = 1 << 11;
constexpr std::uint32_t kDay = 1 << 5 | 1;  // the first of January 1980: what is the same gives the same bytes

class Fields {
 public:
  Fields& two(std::uint32_t value) { return put(value, 2); }
  Fields& four(std::uint32_t value) { return put(value, 4); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(std::uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

struct Entry {
  std::string name;
  fs::path path;
  std::uint32_t crc = 0, bytes = 0, offset = 0;
};

TrackerError refused(const std::string& path, TrackerError::Remedy remedy, const std::string& why) {
  return {remedy, "cannot write " + path + ": " + why};
}

/// Gives a file in pieces.
template <typename Take>
void read_pieces(const fs::path& path, Take take) {
  std::ifstream in(path, std::ios::binary);
  std::string piece(kPieceBytes, '\0');
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0) {
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) throw TrackerError(TrackerError::Remedy::kRetry, "cannot read " + path.string());
}

std::vector<Entry> entries_of(const std::string& folder, const std::string& path) {
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  for (const auto& file : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    const std::string name = file.path().filename().string();
    if (!file.is_regular_file() || name == kOwnerFile || runner::core::is_temporary_file(name)) continue;
    Entry entry{file.path().lexically_relative(folder).generic_string(), file.path()};
    std::uint64_t bytes = 0;
    read_pieces(file.path(), [&](std::string_view piece) {
      entry.crc =
          static_cast<std::uint32_t>(crc32_z(entry.crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
      bytes += piece.size();
    });
    total += bytes + 2 * entry.name.size() + 200;
    if (total > kBytesMax) throw refused(path, TrackerError::Remedy::kPause, "it would exceed 4 GB");
    entry.bytes = static_cast<std::uint32_t>(bytes);
    entries.push_back(std::move(entry));
  }
  if (entries.size() > kEntriesMax) throw refused(path, TrackerError::Remedy::kPause, "it would exceed 65,535 files");
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

/// What the local and the central header say in the same words.
void describe(Fields& fields, const Entry& entry) {
  fields.two(kVersion).two(kUtf8Names).two(0).two(0).two(kDay);
  fields.four(entry.crc).four(entry.bytes).four(entry.bytes);
  fields.two(static_cast<std::uint32_t>(entry.name.size())).two(0);
}

void write(std::ofstream& out, std::vector<Entry>& entries) {
  std::uint32_t offset = 0;
  const auto put = [&](std::string_view bytes) {
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    offset += static_cast<std::uint32_t>(bytes.size());
  };
  for (Entry& entry : entries) {
    entry.offset = offset;
    Fields local;
    local.four(0x04034b50);
    describe(local, entry);
    put(local.text(entry.name).bytes());
    read_pieces(entry.path, put);
  }
  const std::uint32_t directory = offset;
  for (const Entry& entry : entries) {
    Fields central;
    central.four(0x02014b50).two(kVersion);
    describe(central, entry);
    put(central.two(0).two(0).two(0).four(0).four(entry.offset).text(entry.name).bytes());
  }
  const std::uint32_t directory_bytes = offset - directory;
  const auto count = static_cast<std::uint32_t>(entries.size());
  Fields end;
  put(end.four(0x06054b50).two(0).two(0).two(count).two(count).four(directory_bytes).four(directory).two(0).bytes());
}

}  // namespace

void zip_folder(const std::string& folder, const std::string& path) {
  std::vector<Entry> entries = entries_of(folder, path);
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  write(out, entries);
  out.close();
  std::error_code error;
  if (out) fs::rename(partial, path, error);
  if (!out || error) throw refused(path, TrackerError::Remedy::kRetry, error ? error.message() : "the disk refuses it");
}

}  // namespace trackers
