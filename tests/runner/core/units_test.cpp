#include "runner/core/units.h"

#include <catch2/catch.hpp>

using namespace runner::core;

TEST_CASE("intervals carry their unit", "[core][units]") {
  struct Case {
    const char* text;
    Interval interval;
  };
  using Unit = Interval::Unit;
  static constexpr Case cases[] = {
      {"200", {Unit::kSteps, 200}},     {"2ep", {Unit::kEpochs, 2}},         {"0.5ep", {Unit::kEpochs, 0.5}},
      {"500ba", {Unit::kBatches, 500}}, {"1e6tok", {Unit::kTokens, 1e6}},    {"5000sp", {Unit::kSamples, 5000}},
      {"90s", {Unit::kSeconds, 90}},    {"30min", {Unit::kSeconds, 1800}},   {"2h", {Unit::kSeconds, 7200}},
      {"1d", {Unit::kSeconds, 86400}},  {"1h30min", {Unit::kSeconds, 5400}}, {"0.1dur", {Unit::kDuration, 0.1}},
      {" 1e3 ", {Unit::kSteps, 1000}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_interval(c.text).value() == c.interval);
    CHECK(parse_interval(to_text(c.interval)).value() == c.interval);
  }
}

TEST_CASE("an invalid interval is reported with the likely meaning", "[core][units]") {
  struct Case {
    const char* text;
    const char* message;
    const char* hint;
  };
  static constexpr const char* kHint =
      "write 200 (optimizer steps) or an amount with its unit: 2ep, 500ba, 1e6tok, 5000sp, 30min, 0.1dur";
  static constexpr Case cases[] = {
      {"5m", "\"5m\" is not an interval", "did you mean 5min?"},
      {"2 epochs", "\"2 epochs\" is not an interval", "did you mean 2ep?"},
      {"100 steps", "\"100 steps\" is not an interval", "did you mean 100?"},
      {"2 weeks", "\"2 weeks\" is not an interval", kHint},
      {"", "\"\" is not an interval", kHint},
      {"ep", "\"ep\" is not an interval", kHint},
      {"inf", "\"inf\" is not an interval", kHint},
      {"2ep3", "\"2ep3\" is not an interval", kHint},
      {"0", "an interval must be more than 0, got \"0\"", kHint},
      {"-3ep", "an interval must be more than 0, got \"-3ep\"", kHint},
      {"1.5", "an interval in optimizer steps must be a whole number, got \"1.5\"", kHint},
      {"1.5ba", "an interval in micro-batches must be a whole number, got \"1.5ba\"", kHint},
      {"2dur", "a fraction of the training is at most 1dur, got \"2dur\"",
       "1dur is the whole training, 0.1dur a tenth"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto result = parse_interval(c.text);
    REQUIRE_FALSE(result.ok());
    CHECK(result.failure().message == c.message);
    CHECK(result.failure().hint == c.hint);
  }
}

TEST_CASE("durations are seconds", "[core][units]") {
  struct Case {
    const char* text;
    double seconds;
  };
  static constexpr Case cases[] = {{"90s", 90},       {"1.5h", 5400}, {"2d", 172800}, {"30min", 1800},
                                   {"1h30min", 5400}, {"12", 12},     {"0", 0}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_duration_s(c.text).value() == c.seconds);
  }
  CHECK(parse_duration_s("5m").failure().hint == "did you mean 5min?");
  CHECK(parse_duration_s("-5s").failure().message == "a duration cannot be negative, got \"-5s\"");
  for (const char* wrong : {"", "h", "1:30", "5x", "1h30", "2ep"}) {
    CAPTURE(wrong);
    CHECK(parse_duration_s(wrong).failure().hint ==
          "write seconds or an amount with its unit: 90s, 30min, 1.5h, 2d, 1h30min");
  }
}

TEST_CASE("sizes follow Accelerate's suffixes", "[core][units]") {
  struct Case {
    const char* text;
    std::int64_t bytes;  // -1: refused
  };
  // From the golden vectors, topic sizes, kind parse_size; a bare number is ours.
  static constexpr Case cases[] = {
      {"10GB", 10000000000},
      {"500MB", 500000000},
      {"1MiB", 1048576},
      {"3KiB", 3072},
      {"0.5GiB", 536870912},
      {"100Mb", 12500000},
      {"8Kb", 1000},
      {"10gib", 10737418240},
      {"1 GB", 1000000000},
      {"1e3KB", 1000000},
      {"0.0001KB", 0},
      {"4mb", 500000},
      {"16mib", 16777216},
      {"100kb", 12500},
      {"", -1},
      {"1,000MB", -1},
      {"3B", -1},
      {"-1", -1},
      {"1024", 1024},
      {"1e30GB", -1},
      {"nanGB", -1},
      {"1.5", -1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto result = parse_bytes(c.text);
    CHECK((result.ok() ? result.value() : -1) == c.bytes);
  }
}

TEST_CASE("amounts are written in readable units", "[core][units]") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(1500) == "1.5 KB");
  CHECK(format_bytes(999999) == "1.0 MB");
  CHECK(format_bytes(-2500000) == "-2.5 MB");
  CHECK(format_duration(0.0032) == "3 ms");
  CHECK(format_duration(3.21) == "3.2 s");
  CHECK(format_duration(62) == "1 min 02 s");
  CHECK(format_duration(3720) == "1 h 02 min");
  CHECK(format_duration(90000) == "1 d 01 h");
  CHECK(format_count(7) == "7");
  CHECK(format_count(12345) == "12.3 k");
  CHECK(format_count(4560000) == "4.56 M");
  CHECK(format_count(999999) == "1.00 M");
}
