#include "runner/sweep/trial/gpu_shares.h"

#include <catch2/catch.hpp>

using runner::sweep::GpuShares;

TEST_CASE("a trial gets the GPU that the fewest others have", "[sweep]") {
  GpuShares shares({"2", "5"}, 1);
  CHECK(shares.take(1) == "2");
  CHECK(shares.take(2) == "5");
  CHECK(shares.take(3) == "2");
  shares.give_back(2);
  CHECK(shares.take(4) == "5");
  shares.give_back(7);  // never started
}

TEST_CASE("a trial of several processes gets as many GPUs, if there are", "[sweep]") {
  GpuShares shares({"0", "1", "2", "3"}, 2);
  CHECK(shares.take(1) == "0,1");
  CHECK(shares.take(2) == "2,3");
  shares.give_back(1);
  CHECK(shares.take(3) == "0,1");
  CHECK(GpuShares({"0"}, 2).take(1).empty());
  CHECK(GpuShares({}, 1).take(1).empty());
}
