#include "runner/core/platform/cgroup_limit.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace {

using runner::core::cgroup_memory_limit;

class Mount {
 public:
  void put(const std::string& path, const std::string& text) const {
    const auto file = std::filesystem::path(dir_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  std::optional<std::int64_t> limit(const std::string& groups) const {
    return cgroup_memory_limit(groups, dir_.path());
  }

 private:
  tests::TempDir dir_;
};

TEST_CASE("a cgroup of version 2 has the least limit of those above it", "[cgroup]") {
  const Mount mount;
  mount.put("jobs/memory.max", "3000");
  mount.put("jobs/one/memory.max", "max");
  CHECK(mount.limit("0::/jobs/one\n") == 3000);
  mount.put("jobs/one/memory.max", "2000");
  CHECK(mount.limit("0::/jobs/one\n") == 2000);
  CHECK(mount.limit("0::/\n") == std::nullopt);
}

TEST_CASE("a cgroup of version 1 is that of the memory", "[cgroup]") {
  const Mount mount;
  mount.put("memory/jobs/memory.limit_in_bytes", "3000");
  mount.put("memory/memory.limit_in_bytes", "9223372036854771712");
  mount.put("cpu/other/memory.limit_in_bytes", "1");
  CHECK(mount.limit("9:cpu,cpuacct:/other\n4:memory:/jobs\n0::/\n") == 3000);
  CHECK(mount.limit("4:cpu:/jobs\n") == 9223372036854771712);
}

TEST_CASE("a group that is not found by its name is the folder itself", "[cgroup]") {
  const Mount mount;
  mount.put("memory.max", "1000");
  CHECK(mount.limit("0::/docker/0123\n") == 1000);
  CHECK(mount.limit("damaged\n4:memory\n0::\n") == 1000);
  CHECK(mount.limit("") == 1000);
}

}  // namespace
