#include "runner/launch/cpu_affinity.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

using runner::launch::cores_near_gpu;
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

TEST_CASE("a rank runs at the memory node of its GPU, which it shares with the others there", "[launch]") {
  const tests::TempDir sysfs;
  const auto write = [&](const std::string& path, const std::string& text) {
    runner::core::make_folders(sysfs / path.substr(0, path.rfind('/'))).value();
    runner::core::write_file_atomic(sysfs / path, text).value();
  };
  write("devices/system/node/node0/cpulist", "0-3\n");
  write("devices/system/node/node1/cpulist", "4-7\n");
  write("bus/pci/devices/0000:0a:00.0/numa_node", "1\n");
  write("bus/pci/devices/0000:1b:00.0/numa_node", "0\n");
  write("bus/pci/devices/0000:2c:00.0/numa_node", "1\n");
  write("bus/pci/devices/0000:3d:00.0/numa_node", "-1\n");
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::string> gpus = {"0000:0A:00.0", "0000:1B:00.0", "0000:2C:00.0", "0000:3D:00.0"};
  const auto cores = [&](int rank, int size) { return cores_near_gpu(all, gpus, rank, size, sysfs.path()); };
  CHECK(cores(0, 1) == std::vector<int>{4, 5, 6, 7});
  CHECK(cores(0, 3) == std::vector<int>{4, 5});
  CHECK(cores(1, 3) == std::vector<int>{0, 1, 2, 3});
  CHECK(cores(2, 3) == std::vector<int>{6, 7});
  CHECK(cores(3, 4).empty());                                       // no node is known
  CHECK(cores_near_gpu({0, 1}, gpus, 0, 1, sysfs.path()).empty());  // the job has no core there
  CHECK(cores_near_gpu(all, {}, 0, 1, sysfs.path()).empty());       // on the CPU
  CHECK(cores_near_gpu({2, 3, 6}, gpus, 2, 3, sysfs.path()) == std::vector<int>{6});
}
