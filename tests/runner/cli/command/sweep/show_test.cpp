#include <catch2/catch.hpp>

#include "runner/query/filter.h"
#include "runner/review/runs.h"
#include "runner/review/sweep/board.h"
#include "runner/review/sweep/summary.h"
#include "runner/review/sweep/trials_table.h"
#include "tests/runner/cli/sweep_fixture.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::review;
using namespace runner::terminal;
using runner::core::Diagnostics;
using runner::sweep::TrialState;

constexpr Terminal kPlain{.width = 0, .unicode = false, .color = false};

runner::sweep::OpenSweep three(const std::string& folder) {
  runner::sweep::OpenSweep open = cli_test::open_sweep(folder,
                                                       "  parameters:\n"
                                                       "    optimizer.lr: {min: 0.001, max: 0.1}\n"
                                                       "    model.hidden: {values: [[4], [8, 8]]}\n");
  cli_test::add_trial(open, {0.001, 0}, {.value = 3});
  cli_test::add_trial(open, {0.01, 1}, {.value = 1});
  cli_test::add_trial(open, {0.1, 0}, {.state = TrialState::kFailed, .step = 0, .reason = "the loss is nan"});
  return open;
}

std::string shown(const runner::sweep::OpenSweep& open, const RunsListRequest& request) {
  const store_test::FixedClock clock;
  const RunsContext context{"runs", clock, kPlain};
  Diagnostics diagnostics;
  std::optional<runner::query::Filter> filter;
  if (!request.filter.empty()) filter = runner::query::Filter::parse(request.filter, diagnostics);
  auto rows = trials_as_runs(open);
  if (!select_runs(rows, request, filter, context, diagnostics)) return render(diagnostics);
  return list_text(std::move(rows), request, request.columns.empty() ? trial_columns(open) : request.columns, context);
}

}  // namespace

TEST_CASE("trials are listed, filtered and sorted as runs are", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = three(dir.path());
  CHECK(shown(open, {}) ==
        "trial  state     val/loss  step  duration  run   optimizer.lr  model.hidden  reason\n"
        "    0  complete         3     2     1.0 s  run0         0.001  [4]\n"
        "    1  complete         1     2     1.0 s  run1          0.01  [8, 8]\n"
        "    2  failed                 0     1.0 s  run2           0.1  [4]           the loss is nan\n");
  CHECK(shown(open, {.filter = "state == complete and optimizer.lr > 0.005", .columns = {"trial", "seed"}}) ==
        "trial  seed\n    1  1337\n");
  CHECK(shown(open, {.sort = "val/loss", .columns = {"trial", "model.hidden"}, .format = "csv"}) ==
        "trial,model.hidden\n1,\"[8, 8]\"\n0,[4]\n2,[4]\n");
  CHECK(shown(open, {.sort = "stat"}).find("did you mean \"state\"?") != std::string::npos);
}

TEST_CASE("a parameter that is an entry of a list has its column", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = cli_test::open_sweep(dir.path(),
                                                             "  parameters:\n"
                                                             "    'model.hidden[0]': {values: [4, 16]}\n");
  cli_test::add_trial(open, {0}, {.value = 3});
  cli_test::add_trial(open, {1}, {.value = 1});
  CHECK(shown(open, {.columns = {"trial", "model.hidden[0]"}}) ==
        "trial  model.hidden[0]\n"
        "    0                4\n"
        "    1               16\n");
  CHECK(shown(open, {.filter = "model.hidden[0] > 4", .columns = {"trial"}, .format = "csv"}) == "trial\n1\n");
}

TEST_CASE("the heading of a sweep has two lines", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = three(dir.path());
  CHECK(sweep_heading(open) ==
        "tiny-1  val/loss  3 of 9 done, 1 failed, 6.0 s left\n"
        "best 1  optimizer.lr=0.01 model.hidden=[8, 8]\n");
}

TEST_CASE("the board has no line wider than its terminal, and no more than it has room for", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = three(dir.path());
  for (int i = 0; i < 6; ++i) {  // that run, and have no run yet
    runner::sweep::Study::Demand demand;
    demand.variants_max = 9;
    demand.propose = [&](const auto& before, const auto&) {
      const runner::sweep::Point point = {0.0123456789, 1};
      return std::optional(
          runner::sweep::Variant{static_cast<std::int64_t>(before.size()), point, open.sweep.space().text(point)});
    };
    REQUIRE(open.study->claim(demand));
  }
  const store_test::FixedClock clock;
  SweepBoard board(open.sweep, *open.study, clock);
  const auto lines = board.lines({.width = 60, .unicode = false, .color = false}, 8);
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "########................  3 of 9 done, 6 running, 1 failed,~");
  CHECK(lines[1] == "val/loss best 1  optimizer.lr=0.01 model.hidden=[8, 8]");
  CHECK(lines[2] == "trial    step  value  steps/s  variant");
  CHECK(lines[3] == "    3  starts                  optimizer.lr=0.012346 model.~");
  CHECK(lines[7] == "and 2 more");
}
