#include "tests/support/cost.h"

#include <malloc.h>
#include <time.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

namespace tests {
namespace {

constexpr double kRefusalSeconds = 1.0;
constexpr std::int64_t kRefusalBytes = 64 << 20;

std::int64_t memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) << 10;
  }
  return 0;
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

Cost cost_of(const std::function<void()>& call) {
  ::malloc_trim(0);                             // what an earlier call freed would hide what this one takes
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak is what it is now
  const std::int64_t before = memory("VmRSS");
  const double began = processor_seconds();
  call();
  return {processor_seconds() - began, memory("VmHWM") - before};
}

void check_cost_of_refusal(const std::function<void()>& call) {
  const Cost cost = cost_of(call);
  CHECK(cost.seconds <= kRefusalSeconds);
  CHECK(cost.bytes <= kRefusalBytes);
}

}  // namespace tests
