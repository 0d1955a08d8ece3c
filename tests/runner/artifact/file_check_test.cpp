#include "runner/artifact/file_check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "runner/artifact/io/checksum.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

/// Hands out rooms of the given sizes, round and round.
struct Rooms final : FileSink {
  std::string bytes;
  std::vector<std::int64_t> sizes;
  std::size_t asked = 0;
  std::int64_t at = 0;
  std::span<char> buffer_for(std::int64_t left) override {
    const std::int64_t size = std::min(left, sizes[asked++ % sizes.size()]);
    const std::span<char> room(bytes.data() + at, static_cast<std::size_t>(size));
    at += size;
    return room;
  }
};

FileEntry write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  return {"file", static_cast<std::int64_t>(content.size()), checksum_of(content)};
}

std::string counted_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * i + i / 251);
  return bytes;
}

TEST_CASE("what is kept of a file is its bytes, wherever they go", "[artifact][file_check]") {
  const TempDir dir;
  const std::string content = counted_bytes(3'000'001);  // more than is read at once
  const FileEntry entry = write(dir / "file", content);
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{{3'000'001}, {8, 1000, 2'500'000}, {1 << 20}, {999'999, 1}}) {
    Rooms rooms;
    rooms.bytes.resize(content.size());
    rooms.sizes = sizes;
    CHECK(read_verified(dir / "file", entry, rooms).ok());
    CHECK((rooms.bytes == content));  // not printed: 3 MB
  }
}

TEST_CASE("keeping a file refuses what verifying it refuses, in the same words", "[artifact][file_check]") {
  const TempDir dir;
  const std::string content = counted_bytes(5000);
  const FileEntry entry = write(dir / "file", content);
  struct Case {
    const char* name;
    std::string there;
  };
  std::string flipped = content;
  flipped[4999] = static_cast<char>(flipped[4999] ^ 4);
  for (const Case& c : {Case{"a bit", flipped}, Case{"cut off", content.substr(0, 4000)}, Case{"longer", content + "x"},
                        Case{"empty", ""}}) {
    INFO(c.name);
    write(dir / "file", c.there);
    Rooms rooms;
    rooms.bytes.resize(content.size());
    rooms.sizes = {100};
    const core::Result<void> kept = read_verified(dir / "file", entry, rooms);
    const core::Result<void> verified = verify_file(dir / "file", entry);
    REQUIRE_FALSE(kept.ok());
    REQUIRE_FALSE(verified.ok());
    CHECK(kept.failure().message == verified.failure().message);
  }
  std::filesystem::remove(dir / "file");
  Rooms rooms;
  CHECK(read_verified(dir / "file", entry, rooms).failure().message == dir / "file" + " is missing");
}

}  // namespace
}  // namespace runner::artifact
