#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "runner/core/text/utf8.h"
#include "runner/net/digest.h"
#include "tests/support/folder.h"
#include "trackers/io/safe_name.h"
#include "trackers/io/wire.h"
#include "trackers/wandb_file.h"

namespace {

using runner::net::sha256;

using namespace trackers;

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the checksums have their published values", "[trackers][files]") {
  // FIPS 180-4, examples; one and two blocks, and none.
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a name becomes the name of a file, and no two of them the same", "[trackers][files]") {
  CHECK(safe_name("loss") == "loss");
  CHECK(safe_name("step-000100.json") == "step-000100.json");
  std::set<std::string> names;
  const std::string hostile[] = {"",
                                 ".",
                                 "..",
                                 "/",
                                 "a/b",
                                 "a_b",
                                 "a b",
                                 "../../etc/passwd",
                                 "-rf",
                                 "x\n",
                                 "x\r",
                                 "loss ",
                                 "loss",
                                 "Ünı",
                                 "🔥",
                                 "a\\b",
                                 ".bash",
                                 "end.",
                                 "a\"b",
                                 "%2F",
                                 "\xff",
                                 "CON:",
                                 "*",
                                 std::string(10'000, 'x'),
                                 std::string(9'999, 'x')};
  for (const std::string& name : hostile) {
    const std::string safe = safe_name(name);
    INFO(name.substr(0, 20) << " is " << safe);
    CHECK(safe.size() <= 80);
    CHECK(safe.find_first_of("/\\ \n\r\"*:%") == std::string::npos);
    CHECK(safe[0] != '.');
    CHECK(safe[0] != '-');
    CHECK(runner::core::find_invalid_utf8(safe) == std::string::npos);
    CHECK(names.insert(safe).second);
  }
}

TEST_CASE("W&B's file begins as its own client begins it", "[trackers][wandb]") {
  const tests::Folder here;
  WandbFile file("run.wandb", 0);
  Wire version, header, record;
  version.text(1, "0.31.0").text(2, "0.70.0");
  header.message(1, version);
  record.integer(1, 1).message(21, header);
  file.append(record.bytes());
  file.flush(false);
  const std::string bytes = content("run.wandb");
  // As recorded from wandb 0.31.
  CHECK(bytes == std::string("\x3a\x57\x26\x42\xe1\xbe\x00\xc4\x05\x00\xd4\x17\x00\x01\x08\x01\xaa\x01\x12\x0a\x10\x0a"
                             "\x06\x30\x2e\x33\x31\x2e\x30\x12\x06\x30\x2e\x37\x30\x2e\x30",
                             37));
}

TEST_CASE("a long record is cut at the blocks of W&B's file", "[trackers][wandb]") {
  const tests::Folder here;
  {
    WandbFile file("run.wandb", 0);
    file.append(std::string(32'768 - 7 - 7 - 3, 'a'));  // leaves 3 bytes: too few for a frame
    file.append(std::string(70'000, 'b'));
    file.flush(false);
  }
  const std::string bytes = content("run.wandb");
  CHECK(bytes.substr(32'765, 3) == std::string(3, '\0'));
  CHECK(bytes[32'768 + 6] == 2);
  CHECK(bytes[2 * 32'768 + 6] == 3);
  CHECK(bytes[3 * 32'768 + 6] == 4);
  CHECK(bytes.size() == 3 * 32'768 + 7 + 70'000 - 2 * (32'768 - 7));
  // Opened again, it goes on in the same frames.
  WandbFile file("run.wandb", static_cast<std::int64_t>(bytes.size()));
  file.append("c");
  file.flush(false);
  CHECK(content("run.wandb").substr(bytes.size() + 6) ==
        "\x01"
        "c");
}
