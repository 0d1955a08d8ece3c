#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "runner/review/plot_file.h"
#include "runner/review/runs.h"
#include "runner/store/annotations.h"
#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using runner::core::Diagnostics;
using runner::terminal::Terminal;
namespace store = runner::store;

TEST_CASE("hostile names do no harm in a table, in CSV and in JSON", "[review]") {
  const OutputDir output;
  FixedClock clock;
  store::NewRun run = store_test::new_run(output, "tiny");
  auto writer = store_test::create(run, clock);
  const std::string hostile[] = {
      "a/b/\"c\",d",   "two\nlines",        "tab\there",  "\x1b[31mred",
      "\u202egnp.exe", "\u05d0\u05d1/loss", "\U0001f525", std::string(10'000, 'x'),
  };
  for (const std::string& name : hostile) store_test::log(*writer, name, 1, 1.5);
  writer->finish(store::RunStatus::kFinished, "");
  store::add_tags(writer->run_dir(), {"\u202e\"tag\"", std::string(10'000, 't')});
  // Twice: the second time from the index.
  clock.now_ms += 60'000'000'000;
  for (int round = 0; round < 2; ++round) {
    const auto runs = store::list_runs(output.path, clock);
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].metrics.size() == std::size(hostile));
    for (const std::string& name : hostile) CHECK(runs[0].metrics.count(name) == 1);
    CHECK(runs[0].tags.size() == 2);
  }

  Diagnostics diagnostics;
  const Terminal narrow{.width = 40, .unicode = true, .color = false};
  const std::vector<std::string> columns(std::begin(hostile), std::end(hostile));
  const std::string texts[] = {
      runs_list({output.path, clock, narrow}, {.columns = {"name", "tags"}}, diagnostics).value(),
      runs_list({output.path, clock, kPlain}, {.columns = columns}, diagnostics).value(),
      runs_show({output.path, clock, narrow}, {.run = "last"}, diagnostics).value(),
      runs_compare({output.path, clock, narrow}, {.runs = {"last", "last"}}, diagnostics).value(),
  };
  for (const std::string& text : texts) {
    CAPTURE(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\u202e") == std::string::npos);
    CHECK(text.find(std::string(200, 'x')) == std::string::npos);
  }
  CHECK(std::count(texts[1].begin(), texts[1].end(), '\n') == 2);
  for (const std::string& name : hostile) {
    const std::string plot =
        runs_plot({output.path, clock, narrow}, {.curves = {.metrics = {name}}, .picture = {.width = 40}}, diagnostics)
            .value();
    CAPTURE(plot);
    CHECK(plot.find('\x1b') == std::string::npos);
    CHECK(std::count(plot.begin(), plot.end(), '\n') == 18);  // a title, 16 lines, an axis
  }
  CHECK(runs_list({output.path, clock, kPlain}, {.columns = {hostile[0], hostile[1]}, .format = "csv"}, diagnostics) ==
        "\"a/b/\"\"c\"\",d\",\"two\nlines\"\n1.5,1.5\n");
  CHECK(runs_list({output.path, clock, kPlain}, {.columns = {hostile[4]}, .format = "json"}, diagnostics) ==
        "[\n  {\n    \"\\u202egnp.exe\": 1.5\n  }\n]\n");
}
