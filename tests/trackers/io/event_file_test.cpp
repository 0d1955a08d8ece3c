#include "trackers/io/event_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/runner/store/fixture.h"
#include "trackers/io/crc32c.h"
#include "trackers/io/wire.h"

namespace {

using namespace trackers;

// By hand, from the format: length, its checksum, the event, its checksum.
std::string record(const Wire& event) {
  const auto little_endian = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const auto checksum = [&](const std::string& bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U, 4);
  };
  const std::string length = little_endian(event.bytes().size(), 8);
  return length + checksum(length) + event.bytes() + checksum(event.bytes());
}

Wire event(std::int64_t step) { return Wire().real(1, 1700000000.0 + static_cast<double>(step)).integer(2, step); }

std::string scalar(std::int64_t step, const std::string& tag, float value) {
  return record(event(step).message(5, Wire().message(1, Wire().text(1, tag).real32(2, value))));
}

Wire plugin(const char* name, const Wire& content) {
  return Wire().message(1, Wire().text(1, name).message(2, content));
}

struct Folder : store_test::OutputDir {
  std::string write(const std::string& bytes) const {
    const std::string file = path + "/events.out.tfevents.1";
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
};

}  // namespace

TEST_CASE("TensorBoard's event files are read as they are written today and were before", "[trackers][event_file]") {
  const Folder folder;
  const Wire double_tensor = Wire().integer(1, 2).packed_reals(6, std::vector<double>{0.1});
  const Wire text_tensor = Wire().integer(1, 7).text(8, "to be");
  const Wire hparams = Wire().message(3, Wire()
                                             .message(1, Wire().text(1, "lr").message(2, Wire().real(2, 0.25)))
                                             .message(1, Wire().text(1, "depth").message(2, Wire().real(2, 3)))
                                             .message(1, Wire().text(1, "opt").message(2, Wire().text(3, "adam")))
                                             .message(1, Wire().text(1, "tied").message(2, Wire().integer(4, 1))));
  const std::string file = folder.write(
      record(Wire().real(1, 1.7e9).text(3, "brain.Event:2")) + scalar(1, "loss", 2.5F) +
      record(event(2).message(
          5, Wire()
                 .message(1, Wire().text(1, "val/loss").message(8, double_tensor))
                 .message(1, Wire().text(1, "sample").message(8, text_tensor).message(9, plugin("text", Wire())))
                 .message(1, Wire().text(1, "_hparams_").message(9, plugin("hparams", hparams)))
                 .message(1, Wire().text(1, "picture").message(4, Wire().integer(1, 3))))));
  EventFile all;
  REQUIRE(read_event_file(file, all));
  REQUIRE(all.scalars.size() == 2);
  CHECK(all.scalars[0].tag == "loss");
  CHECK(all.scalars[0].step == 1);
  CHECK(all.scalars[0].time_ms == 1'700'000'001'000);
  CHECK(all.scalars[0].value == 2.5);
  CHECK(all.scalars[1].value == 0.1);
  REQUIRE(all.texts.size() == 1);
  CHECK(all.texts[0].text == "to be");
  CHECK(runner::core::to_json(all.hparams, -1) == R"({"lr": 0.25, "depth": 3, "opt": "adam", "tied": true})");
  CHECK(all.left_out == 1);
  CHECK(all.damage.empty());
}

TEST_CASE("what a run wrote beyond the step it was started again from does not count", "[trackers][event_file]") {
  const Folder folder;
  const std::string file = folder.write(scalar(1, "loss", 1) + scalar(2, "loss", 2) + scalar(3, "loss", 3) +
                                        record(event(2).message(7, Wire().integer(1, 1))) + scalar(2, "loss", 20));
  EventFile all;
  REQUIRE(read_event_file(file, all));
  REQUIRE(all.scalars.size() == 2);
  CHECK(all.scalars[0].value == 1);
  CHECK(all.scalars[1].value == 20);
}

TEST_CASE("a file that is cut or damaged gives what comes before", "[trackers][event_file]") {
  const Folder folder;
  const std::string first = scalar(1, "loss", 1), second = scalar(2, "loss", 2);
  const std::string whole = first + second;
  for (std::size_t bytes = first.size() + 1; bytes < whole.size(); ++bytes) {
    EventFile all;
    REQUIRE(read_event_file(folder.write(whole.substr(0, bytes)), all));
    CHECK(all.scalars.size() == 1);
    CHECK(all.damage.find("its last record is truncated") != std::string::npos);
  }
  for (std::size_t at = first.size(); at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EventFile all;
    REQUIRE(read_event_file(folder.write(flipped), all));
    CHECK(all.scalars.size() == 1);
    CHECK_FALSE(all.damage.empty());
  }
  EventFile all;
  const auto none = read_event_file(folder.write("no event file"), all);
  REQUIRE_FALSE(none);
  CHECK(none.failure().message.find("is not an event file of TensorBoard") != std::string::npos);
}
