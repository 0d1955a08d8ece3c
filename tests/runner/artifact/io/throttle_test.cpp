#include "runner/artifact/io/throttle.h"

#include <catch2/catch.hpp>

#include <thread>

namespace runner::artifact {
namespace {

struct FakeClock final : core::Clock {
  std::int64_t ns = 0;
  std::int64_t wall_ms() const override { return 0; }
  std::int64_t monotonic_ns() const override { return ns; }
};

constexpr std::int64_t kSecond = 1'000'000'000;

TEST_CASE("work pauses until the budget allows more", "[artifact][throttle]") {
  struct Piece {
    const char* name;
    std::int64_t begin_ns, bytes, rest_ns;
  };
  // 1000 bytes in 10 s: 10 ms a byte.
  const Piece pieces[] = {
      {"ahead", 1 * kSecond, 200, 1 * kSecond},
      {"just in time", 3 * kSecond, 100, 0},
      {"behind", 9 * kSecond, 100, 0},
      {"ahead again", 9 * kSecond, 550, 1 * kSecond / 2},
      {"more than was planned", 11 * kSecond, 200, 1 * kSecond / 2},
  };
  FakeClock clock;
  clock.ns = 70 * kSecond;
  Throttle throttle({.bytes = 1000, .seconds = 10}, clock);
  for (const Piece& piece : pieces) {
    INFO(piece.name);
    clock.ns = 70 * kSecond + piece.begin_ns;
    CHECK(throttle.pause_ns_after(piece.bytes) == Approx(piece.rest_ns).margin(10));
  }
}

TEST_CASE("disable() ends the current pause and all later ones", "[artifact][throttle]") {
  FakeClock clock;
  Throttle throttle({.bytes = 1, .seconds = 1e6}, clock);
  std::jthread worker([&] { throttle.pause_after(1); });  // for eleven days
  throttle.disable();
  worker.join();
  throttle.pause_after(1);
  CHECK(throttle.pause_ns_after(1) == 0);
}

}  // namespace
}  // namespace runner::artifact
