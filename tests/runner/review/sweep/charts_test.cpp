#include "runner/review/sweep/charts.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "runner/review/terminal_plot.h"
#include "tests/runner/cli/sweep_fixture.h"

namespace {

using namespace runner::review;
using namespace runner::chart;
using namespace runner::terminal;
using runner::sweep::TrialState;
using Points = std::vector<std::pair<double, double>>;

constexpr Terminal kPlain{.width = 0, .unicode = false, .color = false};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Four variants: one is the best, one is given up, one has no momentum.
runner::sweep::OpenSweep four(const std::string& folder) {
  runner::sweep::OpenSweep open =
      cli_test::open_sweep(folder,
                           "  parameters:\n"
                           "    optimizer.lr: {distribution: log_uniform, min: 0.001, max: 0.1}\n"
                           "    optimizer.type: {values: [sgd, adamw]}\n"
                           "    optimizer.momentum: {min: 0, max: 1, when: 'optimizer.type == \"sgd\"'}\n");
  cli_test::add_trial(open, {0.001, 0, 0.5}, {.value = 3, .curve = {{1, 5}, {2, 3}}});
  cli_test::add_trial(open, {0.01, 1, kNone}, {.value = 1, .curve = {{1, 2}, {2, 1}}});
  cli_test::add_trial(open, {0.1, 0, 0.9}, {.state = TrialState::kPruned, .value = 4, .step = 1, .curve = {{1, 4}}});
  cli_test::add_trial(open, {0.1, 0, 0}, {.value = 2, .curve = {{1, 3}, {2, 2}}});
  return open;
}

SweepHistory history_of(const runner::sweep::OpenSweep& open) {
  return read_history(open, runner::core::system_clock());
}

}  // namespace

TEST_CASE("a history has each trial, and the best so far as a staircase", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = four(dir.path());
  const Picture picture = history_picture(history_of(open));
  const auto& curves = picture.charts.at(0).curves;
  REQUIRE(curves.size() == 3);
  CHECK(curves[0].points == Points{{0, 3}, {1, 3}, {1, 1}, {3, 1}});
  CHECK(curves[1].points == Points{{0, 3}, {1, 1}, {3, 2}});
  CHECK(curves[2].points == Points{{2, 4}});
  CHECK(curves[2].label == "pruned");
}

TEST_CASE("curves are listed from the best to the pruned ones", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = four(dir.path());
  const Picture picture = intermediate_picture(history_of(open));
  std::vector<std::string> labels;
  for (const Curve& curve : picture.charts.at(0).curves) labels.push_back(curve.label);
  CHECK(labels == std::vector<std::string>{"trial 1  1", "trial 3  2", "trial 0  3", "trial 2, pruned  4"});
  CHECK(picture.charts[0].curves[0].points == Points{{1, 2}, {2, 1}});
}

TEST_CASE("shares, times and slices", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = four(dir.path());
  const SweepHistory history = history_of(open);
  CHECK(edf_picture(history).charts.at(0).curves.at(0).points ==
        Points{{1, 0}, {1, 1 / 3.0}, {2, 1 / 3.0}, {2, 2 / 3.0}, {3, 2 / 3.0}, {3, 1}});
  // Each trial takes one second, one after the other.
  const auto timeline = timeline_picture(history).charts.at(0);
  CHECK(timeline.curves.at(0).label == "complete");
  CHECK(timeline.curves[0].points == Points{{0, 0}, {1, 0}, {1, 1}, {2, 1}, {3, 3}, {4, 3}});
  CHECK(timeline.curves.at(1).points == Points{{2, 2}, {3, 2}});
  const Picture slices = slice_picture(history, {0, 1, 2});
  REQUIRE(slices.charts.size() == 3);
  CHECK(slices.charts[0].options.log_x);
  CHECK(slices.charts[1].options.x_names == std::vector<std::string>{"sgd", "adamw"});
  CHECK(slices.charts[2].curves.size() == 2);  // the variant without momentum has no place there
}

TEST_CASE("pairs of parameters: the best is the darkest, the worst the lightest", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = four(dir.path());
  const SweepHistory history = history_of(open);
  const Picture rank = rank_picture(history, {0, 1});
  REQUIRE(rank.charts.size() == 1);
  REQUIRE(rank.charts[0].curves.size() == 3);
  CHECK(rank.charts[0].curves[0].points == Points{{0.001, 0}});
  CHECK(*rank.charts[0].curves[0].shade == 0);
  CHECK(rank.charts[0].curves[2].points == Points{{0.01, 1}});
  CHECK(*rank.charts[0].curves[2].shade == 1);
  const Picture contour = contour_picture(history, {0, 1, 2});
  REQUIRE(contour.charts.size() == 3);
  REQUIRE(contour.charts[0].field);
  for (const double shade : contour.charts[0].field->shades) CHECK((shade >= 0 && shade <= 1));
  CHECK(contour.charts[0].scale->dark == "1");
  CHECK(contour.charts[1].curves[0].points == Points{{0.001, 0.5}, {0.1, 0}});
}

TEST_CASE("parallel coordinates have a gap where a parameter plays no part", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open = four(dir.path());
  const Picture picture = parallel_picture(history_of(open), {0, 1, 2});
  const Chart& chart = picture.charts.at(0);
  CHECK(chart.options.x_names ==
        std::vector<std::string>{"val/loss", "optimizer.lr", "optimizer.type", "optimizer.momentum"});
  const Curve& best = chart.curves.back();
  CHECK(best.points[0] == std::pair(0.0, 0.0));
  CHECK(best.points[1].second == Approx(0.5));
  CHECK(best.points[2].second == 0.75);
  CHECK(std::isnan(best.points[3].second));
}

TEST_CASE("an empty sweep draws an empty picture", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open =
      cli_test::open_sweep(dir.path(), "  parameters: {optimizer.lr: {min: 0.1, max: 1}}\n");
  const SweepHistory history = history_of(open);
  struct Case {
    const char* name;
    Picture picture;
    std::size_t charts;
  };
  const Case cases[] = {{"history", history_picture(history), 1},
                        {"intermediate", intermediate_picture(history), 1},
                        {"edf", edf_picture(history), 1},
                        {"timeline", timeline_picture(history), 1},
                        {"parallel", parallel_picture(history, {0}), 1},
                        {"slice", slice_picture(history, {0}), 1},
                        {"rank of no pair", rank_picture(history, {}), 0}};
  for (const auto& [name, picture, charts] : cases) {
    CAPTURE(name);
    CHECK(picture.charts.size() == charts);
    CHECK(charts_png(picture.charts, picture.columns).starts_with("\x89PNG"));
    for (const Chart& chart : picture.charts) {
      for (const Curve& curve : chart.curves) CHECK(curve.points.empty());
      CHECK_FALSE(plot_chart_text(chart, {}, kPlain).empty());
    }
  }
}

TEST_CASE("axes of choices, shades and fields in characters", "[cli][sweep]") {
  Chart chart;
  Curve light{.points = {{0, 1}}, .mark = Curve::Mark::kDots, .shade = 0.0};
  Curve dark{.points = {{1, 2}}, .mark = Curve::Mark::kDots, .shade = 1.0};
  chart.curves = {light, dark};
  chart.options.x_names = {"sgd", "adamw"};
  chart.scale = ChartScale{"loss", "9", "1"};
  CHECK(plot_chart_text(chart, {.width = 24, .height = 3}, kPlain) ==
        "2 |               @\n"
        "  |\n"
        "1 |     .\n"
        "       sgd      adamw\n"
        "  loss: 9 .-oO@ 1\n");
  Chart field;
  field.curves = {{.points = {{0.5, 0.5}}, .mark = Curve::Mark::kDots}};
  field.options.x_range = field.options.y_range = {0, 1};
  field.options.y_ticks = false;
  field.field = ChartField{2, 1, {0, 1}};
  CHECK(plot_chart_text(field, {.width = 12, .height = 1}, kPlain) ==
        " |     *####\n"
        "  0   step 1\n");
}

namespace {

/// A sweep of a recipe with three data sets, whose losses are compared, and trials that come to these.
runner::sweep::OpenSweep compared(const std::string& folder, const std::string& objectives,
                                  const std::vector<std::vector<double>>& values) {
  runner::sweep::OpenSweep open = cli_test::open_sweep(
      folder, "  parameters: {optimizer.lr: {min: 0.1, max: 1}}\n  objectives: " + objectives + "\n");
  for (const std::vector<double>& one : values) {
    cli_test::add_trial(open, {0.5}, {.value = one[0], .others = {one.begin() + 1, one.end()}});
  }
  return open;
}

constexpr const char* kTwo = "[{name: val/loss}, {name: val/loss, goal: maximize}]";

}  // namespace

TEST_CASE("a front of two objectives stands apart, with the corners between its points", "[cli][sweep]") {
  const tests::TempDir dir;
  runner::sweep::OpenSweep open =
      compared(dir.path(), kTwo, {{0.5, 0.9}, {0.2, 0.5}, {0.2, 0.5}, {0.1, 0.1}, {0.3, 0.4}});
  cli_test::add_trial(open, {0.5}, {.state = TrialState::kFailed, .reason = "val/loss is nan"});
  const Picture picture = pareto_picture(history_of(open));
  REQUIRE(picture.charts.size() == 1);
  REQUIRE(picture.charts[0].curves.size() == 3);
  const Curve &border = picture.charts[0].curves[0], &others = picture.charts[0].curves[1];
  const Curve& front = picture.charts[0].curves[2];
  CHECK(front.points == Points{{0.1, 0.1}, {0.2, 0.5}, {0.2, 0.5}, {0.5, 0.9}});  // what is equal is no worse
  CHECK(front.mark == Curve::Mark::kDots);
  CHECK(others.points == Points{{0.3, 0.4}});
  CHECK(border.points == Points{{0.1, 0.1}, {0.2, 0.1}, {0.2, 0.5}, {0.2, 0.5}, {0.2, 0.5}, {0.5, 0.5}, {0.5, 0.9}});
  CHECK(picture.charts[0].options.title == "val/loss (larger is better) over val/loss, tiny-1");
}

TEST_CASE("a front of one variant is a dot, and of none nothing", "[cli][sweep]") {
  const tests::TempDir one, none;
  const Picture lone = pareto_picture(history_of(compared(one.path(), kTwo, {{0.5, 0.9}})));
  REQUIRE(lone.charts.at(0).curves.size() == 1);
  CHECK(lone.charts[0].curves[0].points == Points{{0.5, 0.9}});
  const Picture empty = pareto_picture(history_of(compared(none.path(), kTwo, {})));
  CHECK(empty.charts.at(0).curves.at(0).points.empty());
}

TEST_CASE("of three objectives each pair is drawn, without a border", "[cli][sweep]") {
  const tests::TempDir dir;
  const runner::sweep::OpenSweep open =
      compared(dir.path(), "[{name: val/loss}, {name: val/loss, goal: maximize}, {name: val/loss}]",
               {{1, 1, 1}, {2, 2, 2}, {3, 1, 3}});
  const Picture picture = pareto_picture(history_of(open));
  REQUIRE(picture.charts.size() == 3);
  CHECK(picture.charts[1].curves.at(0).points == Points{{3, 3}});
  CHECK(picture.charts[1].curves.at(1).points == Points{{1, 1}, {2, 2}});
  CHECK(picture.charts[2].options.x_title == "val/loss (larger is better)");
}
