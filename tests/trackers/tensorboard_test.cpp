#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/folder.h"
#include "trackers/io/crc32c.h"
#include "trackers/io/record_file.h"
#include "trackers/io/wire.h"
#include "trackers/tracker.h"

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
  CHECK(crc32c("123456789") == 0xe3069283);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c("") == 0);
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

TEST_CASE("a file continues where it was flushed", "[trackers][files]") {
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

TEST_CASE("a file of another program is not emptied", "[trackers][files]") {
  struct Case {
    const char* name;
    const char* there;
    std::int64_t keep_bytes;
    const char* problem;  // "" where the file can be written
    bool aside;
  };
  static constexpr Case cases[] = {
      {"nothing yet", "", 0, "", false},
      {"torn in the title", "he", 0, "", false},
      {"torn in the id", "head\nrun", 0, "", false},
      {"this run's, to be rewritten", "head\nrun1,loss\n", 0, "", false},
      {"this run's, which goes on", "head\nrun1,loss\n", 14, "", false},
      {"emptied to be rewritten when a kill came", "", 3, "", false},
      {"another run's", "head\nrun2,loss\n", 0, "", true},
      {"another run's by now", "head\nrun2,loss\n", 14, " belongs to another run now", false},
      {"a person's", "my thesis", 0, " has content that roux did not write", false},
      {"a person's with our titles", "head\n../x,", 0, " has content that roux did not write", false},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::Folder here;
      std::ofstream("a.csv") << c.there;
      std::string problem;
      try {
        claim_file("a.csv", {"head\n", "run1", ","}, c.keep_bytes);
      } catch (const TrackerError& error) {
        problem = error.what();
      }
      CHECK(problem == (*c.problem != '\0' ? std::string("a.csv") + c.problem : ""));
      CHECK(content("a.csv") == (c.aside ? "" : c.there));
      CHECK(content("a.csv.run2") == (c.aside ? c.there : ""));
    }
  }
}
