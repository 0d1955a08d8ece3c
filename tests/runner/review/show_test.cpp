#include "runner/review/media.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "runner/review/runs.h"
#include "tests/runner/review/fixture.h"
#include "tests/support/temp_dir.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using review_test::record_run;
using review_test::RecordedRun;
using review_test::replaced;
using runner::core::Diagnostics;
namespace store = runner::store;

TEST_CASE("the page of a run shows its facts, metrics and samples", "[review][show]") {
  const OutputDir output;
  FixedClock clock;
  const RecordedRun recorded =
      record_run(output, clock, "alpha", R"({"checkpoint": {"monitor": "loss", "mode": "min"}})", 1.5);
  Diagnostics diagnostics;
  auto text = runs_show({output.path, clock, kPlain}, {.run = "last"}, diagnostics);
  REQUIRE(text);
  CHECK(replaced(replaced(*text, recorded.id, "ID"), output.path, "runs") ==
        "alpha  finished: 3 steps are done\n"
        "  id       ID\n"
        "  began    2027-01-15 08:00:00 UTC (2 min ago), took 1 min 30 s\n"
        "  step     3\n"
        "  command  roux run recipe.yaml\n"
        "  folder   runs/alpha-ID\n"
        "           recipe.yaml, resolved.json (recipe hash 0123456789abcdef), run.db, checkpoints/, logs/\n"
        "\n"
        "metrics\n"
        "  metric         first    last  best  at step  points\n"
        "  loss             3.5     1.5   1.5        3       3\n"
        "  val/accuracy    0.25    0.25  0.25        3       1\n"
        "  lr            0.0003  0.0003     -        -       1\n"
        "\n"
        "samples\n"
        "  at step 3\n"
        "    to be\n"
        "    or    not \\x1b[31m\n");
  CHECK_FALSE(runs_show({output.path, clock, kPlain}, {.run = "alhpa"}, diagnostics));
  CHECK(render(diagnostics) == "error: no run in " + output.path + " is called \"alhpa\"\n" +
                                   "  hint: did you mean \"alpha\"? `roux runs list` shows the only run\n");
}

TEST_CASE("a wide table shows its last columns, and ten classes all of their rows", "[review][show]") {
  const tests::TempDir dir;
  const auto table = [&dir](const std::string& file, int columns, int rows) {
    std::string titles, row;
    for (int i = 0; i < columns; ++i) {
      titles += (i == 0 ? "\"c" : ", \"c") + std::to_string(i) + "\"";
      row += (i == 0 ? "" : ", ") + std::to_string(i);
    }
    std::string data;
    for (int i = 0; i < rows; ++i) data += (i == 0 ? "[" : ", [") + row + "]";
    std::ofstream(dir / file) << "{\"columns\": [" << titles << "], \"data\": [" << data << "]}";
    store::ArtefactRow artefact;
    artefact.kind = "table";
    artefact.path = file;
    return artefact;
  };
  CHECK(tables_text(dir.path(), {table("wide.json", 125, 1)}, kPlain) ==
        "  wide.json at step 0, 1 row of 125 columns: wide.json\n"
        "    c0  c1  c2  c3  c4  c5  c6  ...  c121  c122  c123  c124\n"
        "    0    1   2   3   4   5   6  ...   121   122   123   124\n");
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  CHECK(lines(tables_text(dir.path(), {table("classes.json", 11, 10)}, kPlain)) == 12);
  const std::string cut = tables_text(dir.path(), {table("long.json", 2, 16)}, kPlain);
  CHECK(cut.starts_with("  long.json at step 0, 16 rows, the first 12: long.json\n"));
  CHECK(lines(cut) == 14);
}
