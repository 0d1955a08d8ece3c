#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "runner/core/crc32.h"
#include "tests/support/folder.h"
#include "trackers/record_file.h"
#include "trackers/tracker.h"
#include "trackers/wire.h"

namespace {

using namespace trackers;

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char c : bytes) text += {kDigits[c >> 4], kDigits[c & 15]};
  return text;
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the checksum is CRC-32C", "[trackers][tensorboard]") {
  CHECK(runner::core::crc32c("123456789") == 0xe3069283);  // RFC 3720, B.4
  CHECK(runner::core::crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(runner::core::crc32c("") == 0);
}

TEST_CASE("a message has protobuf's bytes", "[trackers][tensorboard]") {
  // An event as tensorboard's own writer wrote it: wall time 1790000001, step 7, a scalar loss of 0.5.
  Wire value, summary, event;
  value.text(1, "loss").real32(2, 0.5F);
  summary.message(1, value);
  event.real(1, 1790000001.0).integer(2, 7).message(5, summary);
  CHECK(hex(event.bytes()) == "09000040e04eacda4110072a0d0a0b0a046c6f7373150000003f");
  CHECK(hex(Wire().integer(1, -1).bytes()) == "08ffffffffffffffffff01");
}

TEST_CASE("a file goes on where it was flushed", "[trackers][files]") {
  const tests::Folder here;
  std::int64_t kept = 0;
  {
    RecordFile file("a/b.txt", 0);
    file.append("one\n");
    file.flush(true);
    kept = file.bytes();
    file.append("two\n");
    file.flush(false);
    file.append("never");
  }
  CHECK(content("a/b.txt") == "one\ntwo\n");
  RecordFile file("a/b.txt", kept);
  file.append("three\n");
  file.flush(false);
  CHECK(content("a/b.txt") == "one\nthree\n");
}

TEST_CASE("a file that holds something else is not emptied", "[trackers][files]") {
  struct Case {
    const char* there;
    bool is_own;
  };
  static constexpr Case cases[] = {
      {"", true},
      {"head\nru", true},
      {"head\nrun 1,", true},
      {"head\nrun 1,loss\n", true},
      {"head\nrun 2,", false},
      {"my thesis", false},
  };
  const tests::Folder here;
  require_own("none.csv", "head\nrun 1,");
  for (const Case& c : cases) {
    CAPTURE(c.there);
    std::ofstream("a.csv") << c.there;
    if (c.is_own) {
      CHECK_NOTHROW(require_own("a.csv", "head\nrun 1,"));
    } else {
      CHECK_THROWS_AS(require_own("a.csv", "head\nrun 1,"), trackers::TrackerError);
    }
  }
}
