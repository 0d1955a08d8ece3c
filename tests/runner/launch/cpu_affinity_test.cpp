#include "runner/launch/cpu_affinity.h"

#include <catch2/catch.hpp>

using runner::launch::cores_of_rank;

TEST_CASE("cores are shared out in neighbours, and none is given twice", "[launch]") {
  const std::vector<int> cores = {0, 2, 4, 1, 3};
  CHECK(cores_of_rank(cores, 0, 2) == std::vector<int>{0, 2});
  CHECK(cores_of_rank(cores, 1, 2) == std::vector<int>{4, 1, 3});
  CHECK(cores_of_rank({6, 7}, 0, 3) == std::vector<int>{6});
  CHECK(cores_of_rank({6, 7}, 2, 3) == std::vector<int>{6});
}

TEST_CASE("lists of cores as the kernel writes them", "[launch]") {
  CHECK(runner::launch::parse_core_list("0-2,8\n") == std::vector<int>{0, 1, 2, 8});
  CHECK(runner::launch::parse_core_list("").empty());
  CHECK_FALSE(runner::launch::own_cores_by_node().empty());
}
