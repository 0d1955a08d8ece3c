#include "tests/support/skip.h"

#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace tests {
namespace {

std::set<std::string>& skipped() {
  static std::set<std::string> names;
  return names;
}

/// The last line is what catch_test in tests/CMakeLists.txt looks for. A failure is told as a failure.
class SkipListener final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testRunEnded(const Catch::TestRunStats& stats) override {
    if (skipped().empty() || stats.totals.testCases.failed > 0) return;
    std::printf("skipped %zu of %zu test cases\n", skipped().size(), stats.totals.testCases.total());
  }
};

}  // namespace

void skip(const std::string& reason) {
  const char* ci = std::getenv("CI");
  if (ci != nullptr && *ci != '\0') FAIL("this test cannot run here, and CI is set: " << reason);
  skip_on_this_processor(reason);
}

void skip_on_this_processor(const std::string& reason) {
  const std::string name = Catch::getResultCapture().getCurrentTestName();
  if (skipped().insert(name).second) std::printf("skipped: %s: %s\n", name.c_str(), reason.c_str());
  std::fflush(stdout);
  throw Catch::TestFailureException();  // Catch2 takes it for the end of the case; what failed was counted before
}

CATCH_REGISTER_LISTENER(SkipListener)

}  // namespace tests
