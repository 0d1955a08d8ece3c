#include "runner/core/platform/usage.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runner/core/platform/machine.h"
#include "tests/support/temp_dir.h"

namespace runner::core {
namespace {

using Catch::WithinAbs;

struct SetClock final : Clock {
  std::int64_t wall_ms() const override { return 0; }
  std::int64_t monotonic_ns() const override { return ns; }
  std::int64_t ns = 0;
};

/// The kernel's files at a moment.
struct Proc {
  Proc() {
    std::filesystem::create_directories(dir / "self");
    std::filesystem::create_directories(dir / "net");
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(dir / name) << text; }
  tests::TempDir dir;
};

std::map<std::string, double> values_of(UsageReader& reader) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : reader.read()) values[name] = value;
  return values;
}

}  // namespace

TEST_CASE("shares are of the time since the last look, moved bytes since the first", "[core][usage]") {
  const Proc proc;
  SetClock clock;
  const std::string network = "Inter-|   Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n";
  proc.put("stat", "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 1 1 1\n");
  proc.put("self/stat", "7 (a (name)) S 1 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0 1 0 5\n");
  proc.put("self/io", "rchar: 5\nread_bytes: 1000000\nwrite_bytes: 2000000\n");
  proc.put("net/dev", network + "  eth0: 1000000 1 0 0 0 0 0 0 5000000 1 0 0 0 0 0 0\n");
  proc.put("meminfo", "MemTotal:       8000000 kB\nMemFree: 1 kB\nMemAvailable:   6000000 kB\n");
  proc.put("self/statm", "1000 250 10 1 0 1 0\n");
  UsageReader reader(proc.dir.path(), clock, proc.dir.path());

  clock.ns = 1'000'000'000;
  // 30 of 100 ticks of the machine were busy; 50 ticks of a hundredth second in a second are half a core.
  proc.put("stat", "cpu  120 0 110 760 110 0 0 0 0 0\n");
  proc.put("self/stat", "7 (a (name)) S 1 1 1 0 -1 0 0 0 0 0 130 120 0 0 20 0 1 0 5\n");
  proc.put("self/io", "rchar: 5\nread_bytes: 4000000\nwrite_bytes: 2000000\n");
  proc.put("net/dev", network + "  eth0: 3000000 1 0 0 0 0 0 0 5500000 1 0 0 0 0 0 0\n");
  auto values = values_of(reader);
  CHECK_THAT(values.at("cpu_utilization_percentage"), WithinAbs(30, 1e-9));
  CHECK_THAT(values.at("process_cpu_percentage"), WithinAbs(50, 1e-9));
  CHECK_THAT(values.at("system_memory_usage_megabytes"), WithinAbs(2048, 1e-9));
  CHECK_THAT(values.at("system_memory_usage_percentage"), WithinAbs(25, 1e-9));
  CHECK_THAT(values.at("process_memory_rss_megabytes"), WithinAbs(1.024, 1e-9));
  CHECK_THAT(values.at("process_disk_read_megabytes"), WithinAbs(3, 1e-9));
  CHECK_THAT(values.at("process_disk_write_megabytes"), WithinAbs(0, 1e-9));
  CHECK_THAT(values.at("network_receive_megabytes"), WithinAbs(2, 1e-9));
  CHECK_THAT(values.at("network_transmit_megabytes"), WithinAbs(0.5, 1e-9));
  CHECK(values.at("disk_available_megabytes") > 0);

  clock.ns = 2'000'000'000;
  proc.put("stat", "cpu  120 0 110 860 110 0 0 0 0 0\n");
  values = values_of(reader);
  CHECK_THAT(values.at("cpu_utilization_percentage"), WithinAbs(0, 1e-9));
  CHECK_THAT(values.at("process_disk_read_megabytes"), WithinAbs(3, 1e-9));
}

TEST_CASE("what the kernel does not tell is left out", "[core][usage]") {
  const tests::TempDir empty;
  SetClock clock;
  UsageReader reader(empty / "missing", clock, empty.path());
  const auto values = values_of(reader);
  CHECK_FALSE(values.contains("cpu_utilization_percentage"));
  CHECK_FALSE(values.contains("process_memory_rss_megabytes"));
  CHECK_FALSE(values.contains("disk_usage_percentage"));
}

TEST_CASE("this machine tells what it does", "[core][usage]") {
  UsageReader reader(".", system_clock());
  const auto values = values_of(reader);
  CHECK(values.at("process_memory_rss_megabytes") > 1);
  CHECK(values.at("system_memory_usage_percentage") > 0);
  CHECK(values.at("system_memory_usage_percentage") <= 100);
}

}  // namespace runner::core
