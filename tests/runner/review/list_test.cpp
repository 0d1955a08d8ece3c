#include "runner/review/runs.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using review_test::record_run;
using review_test::RecordedRun;
using review_test::replaced;
using runner::core::Diagnostics;
namespace store = runner::store;

TEST_CASE("runs are listed, filtered, sorted and written for programs", "[review][list]") {
  const OutputDir output;
  FixedClock clock;
  const RecordedRun a = record_run(output, clock, "alpha", R"({"optimizer": {"type": "sgd", "lr": 0.1}})", 1.5);
  const RecordedRun b = record_run(output, clock, "beta", R"({"optimizer": {"type": "adamw", "lr": 3e-4}})", 0.5);
  const RecordedRun c = record_run(output, clock, "gamma", R"({"optimizer": {"type": "sgd", "lr": 0.2}})", 2.5, true);
  const RunsContext context{output.path, clock, kPlain};
  const auto list = [&](const RunsListRequest& request) {
    Diagnostics diagnostics;
    auto text = runs_list(context, request, diagnostics);
    REQUIRE(text);
    for (const RecordedRun* recorded : {&a, &b, &c}) *text = replaced(*text, recorded->id, "IDENTIFIER.");
    return *text;
  };
  CHECK(list({}) ==
        "id           name   status    step  loss  val/accuracy    duration  age\n"
        "IDENTIFIER.  beta   finished     3   0.5          0.25  1 min 30 s  4 min ago\n"
        "IDENTIFIER.  alpha  finished     3   1.5          0.25  1 min 30 s  6 min ago\n");
  CHECK(list({.columns = {"name", "optimizer.lr"}, .format = "csv", .all = true}) ==
        "name,optimizer.lr\ngamma,0.2\nbeta,3e-4\nalpha,0.1\n");
  CHECK(list({.sort = "loss:desc", .columns = {"name"}, .format = "csv"}) == "name\nalpha\nbeta\n");
  CHECK(list({.sort = "optimizer.lr", .columns = {"name"}, .format = "csv", .limit = 1}) == "name\nbeta\n");
  CHECK(list({.filter = "optimizer.type == sgd", .columns = {"name"}, .format = "csv"}) == "name\nalpha\n");
  CHECK(list({.filter = "loss > 100"}) == "no run in " + output.path + " matches \"loss > 100\"\n");
  CHECK(list({.columns = {"name", "loss"}, .format = "json", .limit = 1}) ==
        "[\n  {\n    \"name\": \"beta\",\n    \"loss\": 0.5\n  }\n]\n");
}

TEST_CASE("numbers sort before other values, and CSV writes NaN and infinity as C++ does", "[review][list]") {
  const OutputDir output;
  FixedClock clock;
  for (const char* rate : {"10", "\"5x\"", "9", "true", "1e308", "null", "\"auto\""}) {
    record_run(output, clock, "run", std::string(R"({"optimizer": {"lr": )") + rate + "}}", 1);
  }
  const auto sorted = [&](const std::string& key) {
    Diagnostics diagnostics;
    return runs_list({output.path, clock, kPlain}, {.sort = key, .columns = {"optimizer.lr"}, .format = "csv"},
                     diagnostics)
        .value();
  };
  CHECK(sorted("optimizer.lr") == "optimizer.lr\n9\n10\n1e+308\n5x\nauto\ntrue\n\n");
  CHECK(sorted("-optimizer.lr") == "optimizer.lr\ntrue\nauto\n5x\n1e+308\n10\n9\n\n");

  auto writer = store_test::create(store_test::new_run(output, "strange"), clock);
  store_test::log(*writer, "a", 1, std::nan(""));
  store_test::log(*writer, "b", 1, -std::numeric_limits<double>::infinity());
  writer->finish(store::RunStatus::kFinished, "");
  Diagnostics diagnostics;
  CHECK(runs_list({output.path, clock, kPlain}, {.filter = "a == nan", .columns = {"a", "b"}, .format = "csv"},
                  diagnostics) == "a,b\nnan,-inf\n");
}

TEST_CASE("an unknown name in a list is reported with its flag", "[review][list]") {
  const OutputDir output;
  FixedClock clock;
  record_run(output, clock, "alpha", "{}", 1.5);
  Diagnostics diagnostics;
  CHECK_FALSE(runs_list({output.path, clock, kPlain}, {.sort = "-los", .columns = {"nmae"}}, diagnostics));
  CHECK(render(diagnostics) ==
        "--columns: error: no run has a metric, a recipe key or a property called \"nmae\"\n"
        "  hint: did you mean \"name\"?\n"
        "--sort: error: no run has a metric, a recipe key or a property called \"los\"\n"
        "  hint: did you mean \"loss\"?\n");
}

TEST_CASE("an empty folder says so", "[review][list]") {
  const OutputDir output;
  const FixedClock clock;
  Diagnostics diagnostics;
  CHECK(runs_list({output.path, clock, kPlain}, {}, diagnostics) == "no runs in " + output.path + " yet\n");
  CHECK(runs_list({output.path, clock, kPlain}, {.format = "json"}, diagnostics) == "[]\n");
}
