#include "runner/train/save/save_throttle.h"

#include <catch2/catch.hpp>

namespace runner::train {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST_CASE("a save may take a third of the shortest time between two", "[train][save_rhythm]") {
  SaveThrottle rhythm;
  CHECK(rhythm.seconds_for_save() == 0);
  rhythm.note(40, 5 * kSecond);  // where a run goes on
  rhythm.note(40, 6 * kSecond);  // a save before the first step
  CHECK(rhythm.seconds_for_save() == 0);
  rhythm.note(60, 18 * kSecond);
  CHECK(rhythm.seconds_for_save() == Approx(4));
  rhythm.note(70, 24 * kSecond);
  CHECK(rhythm.seconds_for_save() == Approx(2));
  rhythm.note(100, 90 * kSecond);
  CHECK(rhythm.seconds_for_save() == Approx(2));
}

TEST_CASE("once a save had to wait for another, none takes longer than it must", "[train][save_rhythm]") {
  SaveThrottle rhythm;
  rhythm.note(0, 0);
  rhythm.note(10, 30 * kSecond);
  rhythm.note_wait();
  CHECK(rhythm.seconds_for_save() == 0);
  rhythm.note(20, 60 * kSecond);
  CHECK(rhythm.seconds_for_save() == 0);
}

}  // namespace
}  // namespace runner::train
