#include "runner/artifact/file_writer.h"
#include "runner/artifact/file_check.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <random>
#include <sstream>

#include "tests/support/disk/short_memory.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string random_bytes(std::int64_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Counts what is asked of it; may be a file system without direct writes, or one that refuses them when they come.
class WatchedDisk final : public Io {
 public:
  bool can_direct = true;
  std::int64_t direct_bytes = 0, allocated = 0;
  bool set_direct(int handle, bool on) override {
    const bool done = (can_direct || !on) && Io::set_direct(handle, on);
    if (done) on_ = on;
    return done;
  }
  void write(int handle, const std::string& path, const void* data, std::int64_t bytes) override {
    if (on_) direct_bytes += bytes;
    Io::write(handle, path, data, bytes);
  }
  void allocate(int handle, const std::string& path, std::int64_t bytes) override {
    allocated += bytes;
    Io::allocate(handle, path, bytes);
  }
  void sync_file(int, const std::string&) override {}

 private:
  bool on_ = false;
};

TEST_CASE("a file holds what was appended, whichever way it went", "[artifact][file_writer]") {
  struct Case {
    const char* name;
    std::int64_t bytes;
    std::vector<std::int64_t> pieces;  ///< taken round and round
    bool direct;
  };
  const Case cases[] = {
      {"nothing", 0, {1}, true},
      {"one byte", 1, {1}, true},
      {"a small file in small pieces", 1000, {7, 13}, true},
      {"large, on the grid", 4 << 20, {1 << 20}, true},
      {"large, off the grid by one", (4 << 20) + 1, {1 << 20}, true},
      {"small pieces between large ones", 20'000'003, {64, 3'000'000, 1, 5000, 9'000'001}, true},
      {"the same through the page cache", 20'000'003, {64, 3'000'000, 1, 5000, 9'000'001}, false},
      {"one piece that is larger than a chunk", 17'825'793, {17'825'793}, true},
  };
  for (const Case& c : cases) {
    for (const bool can_direct : {true, false}) {
      DYNAMIC_SECTION(c.name << (can_direct ? "" : ", on a disk without direct writes")) {
        const TempDir dir;
        WatchedDisk disk;
        disk.can_direct = can_direct;
        const std::string bytes = random_bytes(c.bytes, 7);
        FileWriter writer(disk, dir / "file", {c.bytes, c.direct});
        std::size_t piece = 0;
        for (std::int64_t at = 0; at < c.bytes;) {
          const std::int64_t count = std::min(c.pieces[piece++ % c.pieces.size()], c.bytes - at);
          writer.append(bytes.data() + at, count);
          at += count;
        }
        const FileEntry entry = writer.finish("file");
        CHECK(entry.bytes == c.bytes);
        CHECK(entry.checksum == checksum_of(bytes));
        CHECK(read(dir / "file") == bytes);
        CHECK(verify_file(dir / "file", entry).ok());
        CHECK(verify_file(dir / "file", entry, {.from_disk = true}).ok());
        CHECK(disk.allocated == (c.bytes >= 1 << 20 ? c.bytes : 0));
      }
    }
  }
}

TEST_CASE("memory on the grid is written from where it lies", "[artifact][file_writer]") {
  const TempDir dir;
  AlignedBytes image;
  REQUIRE(image.reserve(12 << 20));
  image.prefault();
  const std::string bytes = random_bytes(image.size() - 100, 3);
  std::copy(bytes.begin(), bytes.end(), image.data());
  WatchedDisk disk;
  FileWriter writer(disk, dir / "file", {static_cast<std::int64_t>(bytes.size()), true});
  writer.append(image.data(), static_cast<std::int64_t>(bytes.size()));
  const FileEntry entry = writer.finish("file");
  CHECK(entry.checksum == checksum_of(bytes));
  CHECK(read(dir / "file") == bytes);
  // All but the tail, where the file system takes direct writes at all.
  CHECK((disk.direct_bytes == 0 || disk.direct_bytes == static_cast<std::int64_t>(bytes.size()) / 4096 * 4096));
}

TEST_CASE("damage behind the page cache is found by asking the disk", "[artifact][file_writer]") {
  const TempDir dir;
  Io& disk = system_io();
  const std::string bytes = random_bytes(3 << 20, 5);
  FileWriter writer(disk, dir / "file", {static_cast<std::int64_t>(bytes.size()), true});
  writer.append(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  const FileEntry entry = writer.finish("file");
  {
    std::fstream file(dir / "file", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(2 << 20);
    file.put(static_cast<char>(bytes[2 << 20] ^ 1));
  }
  const core::Result<void> same = verify_file(dir / "file", entry, {.from_disk = true});
  REQUIRE_FALSE(same.ok());
  CHECK(same.failure().message ==
        dir / "file" + " does not match its checksum in the manifest: it was changed or damaged");
}

TEST_CASE("a file is written and verified with what memory there is for its pieces",
          "[artifact][file_writer][memory_limit]") {
  const TempDir dir;
  const std::string bytes = random_bytes(9 << 20, 3), path = dir / "file";
  CHECK(tests::with_memory_left(4 << 20, [&] {  // pieces are of 8 MB where there is room
          FileEntry entry;
          {
            FileWriter writer(system_io(), path, {static_cast<std::int64_t>(bytes.size()), true});
            writer.append(bytes.data(), static_cast<std::int64_t>(bytes.size()));
            entry = writer.finish("file");
          }
          return verify_file(path, entry, {.from_disk = true}).ok();
        }) == 0);
  CHECK((read(path) == bytes));  // not printed
}

}  // namespace
}  // namespace runner::artifact
