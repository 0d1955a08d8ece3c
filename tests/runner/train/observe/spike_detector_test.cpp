#include "runner/train/observe/spike_detector.h"

#include <catch2/catch.hpp>

namespace runner::train {

TEST_CASE("a z-score is the distance from the window's mean in its deviations", "[train][spike]") {
  SpikeDetector detector(4);
  for (const double value : {100.0, 1.0, 3.0, 1.0}) {
    CHECK_FALSE(detector.z_score(1000.0).has_value());  // not before the window is full
    detector.add(value);
  }
  detector.add(3.0);  // the first value leaves: mean 2, deviation 1
  CHECK(*detector.z_score(2.0) == Approx(0.0).margin(1e-12));
  CHECK(*detector.z_score(5.0) == Approx(3.0));
  CHECK(*detector.z_score(-1.0) == Approx(-3.0));
}

TEST_CASE("a loss that stands still has a deviation of one percent", "[train][spike]") {
  SpikeDetector detector(4);
  for (int i = 0; i < 4; ++i) detector.add(2.0);
  CHECK(*detector.z_score(2.02) == Approx(1.0));
  CHECK(*detector.z_score(2.2) == Approx(10.0));
}

TEST_CASE("a restored detector judges as the saved one", "[train][spike]") {
  SpikeDetector detector(4), again(4), shorter(2);
  for (const double value : {0.1, 0.7, 0.30000000000000004, 1.0 / 3.0, 0.25}) detector.add(value);
  again.restore(detector.state());
  CHECK(again.z_score(0.9) == detector.z_score(0.9));
  shorter.restore(detector.state());  // the recipe asks for a smaller window now
  CHECK(shorter.z_score(0.9).has_value());
}

}  // namespace runner::train
