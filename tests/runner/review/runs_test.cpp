#include "runner/review/runs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "runner/chart/chart.h"
#include "runner/chart/document.h"
#include "runner/review/annotate.h"
#include "runner/review/logs.h"
#include "runner/review/media.h"
#include "runner/review/plot_file.h"
#include "runner/review/tail.h"
#include "runner/review/terminal_plot.h"
#include "runner/store/annotations.h"
#include "runner/transfer/import.h"
#include "tests/runner/store/fixture.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace runner::review;
using namespace runner::transfer;
using namespace runner::chart;
using namespace runner::terminal;
using runner::core::Diagnostics;
using runner::core::Node;
using store_test::FixedClock;
using store_test::OutputDir;
namespace store = runner::store;

constexpr Terminal kPlain{.width = 0, .unicode = false, .color = false};

struct Made {
  std::string id, run_dir;
};

Made make_run(const OutputDir& output, FixedClock& clock, const std::string& name, const std::string& resolved,
              double loss, bool smoke = false) {
  store::NewRun run = store_test::new_run(output, name);
  run.resolved_json = resolved;
  run.smoke = smoke;
  auto writer = store_test::create(run, clock);
  for (std::int64_t step = 1; step <= 3; ++step) {
    store_test::log(*writer, "loss", step, loss + static_cast<double>(3 - step));
  }
  store_test::log(*writer, "val/accuracy", 3, 0.25);
  store_test::log(*writer, "lr", 3, 3e-4);
  Node sample = Node::mapping();
  sample.set("text", Node::string("to be\nor\tnot \x1b[31m"));
  writer->event("text", 3, sample);
  const Made made{writer->run_id(), writer->run_dir()};
  clock.now_ms += 90'000;
  writer->finish(store::RunStatus::kFinished, "3 steps are done");
  clock.now_ms += 30'000;
  return made;
}

/// Ids and the temporary folder hold chance; what is compared whole has names instead.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

TEST_CASE("runs are listed, filtered, sorted and written for programs", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  const Made a = make_run(output, clock, "alpha", R"({"optimizer": {"type": "sgd", "lr": 0.1}})", 1.5);
  const Made b = make_run(output, clock, "beta", R"({"optimizer": {"type": "adamw", "lr": 3e-4}})", 0.5);
  const Made c = make_run(output, clock, "gamma", R"({"optimizer": {"type": "sgd", "lr": 0.2}})", 2.5, true);
  const RunsContext context{output.path, clock, kPlain};
  const auto list = [&](const RunsListRequest& request) {
    Diagnostics diagnostics;
    auto text = runs_list(context, request, diagnostics);
    REQUIRE(text);
    for (const Made* made : {&a, &b, &c}) *text = replaced(*text, made->id, "IDENTIFIER.");
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

TEST_CASE("numbers are sorted before what is none, and programs get NaN as they write it", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  for (const char* rate : {"10", "\"5x\"", "9", "true", "1e308", "null", "\"auto\""}) {
    make_run(output, clock, "run", std::string(R"({"optimizer": {"lr": )") + rate + "}}", 1);
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

TEST_CASE("a wrong name in a list is told with its flag", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  make_run(output, clock, "alpha", "{}", 1.5);
  Diagnostics diagnostics;
  CHECK_FALSE(runs_list({output.path, clock, kPlain}, {.sort = "-los", .columns = {"nmae"}}, diagnostics));
  CHECK(render(diagnostics) ==
        "--columns: error: no run has a metric, a recipe key or a property called \"nmae\"\n"
        "  hint: did you mean \"name\"?\n"
        "--sort: error: no run has a metric, a recipe key or a property called \"los\"\n"
        "  hint: did you mean \"loss\"?\n");
}

TEST_CASE("an empty folder says so", "[cli][runs]") {
  const OutputDir output;
  const FixedClock clock;
  Diagnostics diagnostics;
  CHECK(runs_list({output.path, clock, kPlain}, {}, diagnostics) == "no runs in " + output.path + " yet\n");
  CHECK(runs_list({output.path, clock, kPlain}, {.format = "json"}, diagnostics) == "[]\n");
}

TEST_CASE("a run is shown whole", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  const Made made = make_run(output, clock, "alpha", R"({"checkpoint": {"monitor": "loss", "mode": "min"}})", 1.5);
  Diagnostics diagnostics;
  auto text = runs_show({output.path, clock, kPlain}, {.run = "last"}, diagnostics);
  REQUIRE(text);
  CHECK(replaced(replaced(*text, made.id, "ID"), output.path, "runs") ==
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

TEST_CASE("two runs are compared by what differs", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  const Made a = make_run(output, clock, "alpha", R"({"run_name": "alpha", "seed": 1, "loss": {"type": "mse"},
      "optimizer": {"type": "sgd", "lr": 0.1}, "layers": [{"type": "relu"}, {"type": "linear", "out": 3}]})",
                          1.5);
  const Made b = make_run(output, clock, "beta", R"({"run_name": "beta", "seed": 1, "loss": {"type": "mse"},
      "optimizer": {"type": "adamw", "lr": 0.1, "betas": [0.9, 0.95]},
      "layers": [{"type": "relu"}, {"type": "linear", "out": 4}]})",
                          0.5);
  Diagnostics diagnostics;
  auto text = runs_compare({output.path, clock, kPlain}, {.runs = {"alpha", "beta"}}, diagnostics);
  REQUIRE(text);
  CHECK(replaced(replaced(*text, a.id, "IDENTIFIER1"), b.id, "IDENTIFIER2") ==
        "run                        IDENTIFIER1  IDENTIFIER2\n"
        "  name                           alpha         beta\n"
        "  status                      finished     finished\n"
        "  step                               3            3\n"
        "  duration                  1 min 30 s   1 min 30 s\n"
        "\n"
        "recipe, where it differs\n"
        "  optimizer.type                   sgd        adamw\n"
        "  layers[1].out                      3            4\n"
        "  optimizer.betas                    -  [0.9, 0.95]\n"
        "\n"
        "last value of each metric\n"
        "  loss                             1.5          0.5\n"
        "  lr                            0.0003       0.0003\n"
        "  val/accuracy                    0.25         0.25\n");
}

TEST_CASE("a curve is drawn in characters", "[cli][runs]") {
  const double gap = std::numeric_limits<double>::quiet_NaN();
  const Curve falling{"loss", {{0, 4}, {1, 3}, {2, gap}, {3, 1}, {4, 0}}};
  const PlotOptions small{.width = 16, .height = 5, .x_title = "step"};
  CHECK(plot_text({falling}, small, kPlain) ==
        "4 |**\n"
        "  |  **\n"
        "  |\n"
        "  |         **\n"
        "0 |           **\n"
        "   0      step 4\n");
  CHECK(plot_text({falling}, small, {.width = 0, .unicode = true, .color = false}) ==
        "4 \u2524\u2811\u2884\u2840\n"
        "  \u2502  \u2808\u2802\n"
        "  \u2502\n"
        "  \u2502         \u2820\u2840\n"
        "0 \u2524          \u2808\u2812\u2884\n"
        "   0      step 4\n");
  const Curve alone{"loss", {{5, 1}}};
  CHECK(plot_text({alone}, {.width = 14, .height = 3}, {.width = 0, .unicode = true, .color = false}).find("\u28FF") !=
        std::string::npos);
  CHECK(chart_svg({alone}, {}).find("stroke-width=\"6\"") != std::string::npos);
  CHECK(plot_text({{"nothing", {{1, gap}}}}, small, kPlain) == "(no finite values)\n");
  CHECK(plot_text({{"constant", {{1, 2}, {2, 2}}}}, {.width = 14, .height = 3}, kPlain).find("**********") !=
        std::string::npos);
}

TEST_CASE("a curve is drawn whatever its values are", "[cli][runs]") {
  const double most = std::numeric_limits<double>::max();
  CHECK(plot_text({{"far apart", {{0, -most}, {1, 0}, {2, most}}}}, {.width = 22, .height = 3}, kPlain) ==
        " 1.7977e+308 |       ***\n"
        "             |   ****\n"
        "-1.7977e+308 |***\n"
        "              0   step 2\n");
  const std::vector<std::vector<std::pair<double, double>>> curves = {
      {{0, most}},
      {{0, -most}},
      {{0, 5e-324}, {1, 1e-323}},
      {{0, -most}, {1, most}},
      {{0, -0.0}},
      {{0, 1e300}},
      {{-5, 1}, {9.2e18, 1 + 1e-15}},
      {{0, std::numeric_limits<double>::infinity()}},
      {{5e-324, 1}, {most, 2}},
  };
  for (const auto& points : curves) {
    for (const bool log : {false, true}) {
      const Curve curve{"it", points};
      CAPTURE(points[0].first, points[0].second, log);
      for (const std::string& picture : {plot_text({curve}, {.width = 40, .log_x = log, .log_y = log}, kPlain),
                                         chart_svg({curve}, {.title = "it", .log_x = log, .log_y = log})}) {
        CHECK(picture.find("nan") == std::string::npos);
        CHECK(picture.find("inf") == std::string::npos);
      }
    }
  }
}

TEST_CASE("times and numbers are short", "[cli][runs]") {
  CHECK(number_text(0.123456789) == "0.12346");
  CHECK(number_text(12000) == "12000");
  CHECK(number_text(3e-5) == "3e-05");
  CHECK(number_text(std::nan("")) == "nan");
  CHECK(ago_text(0, 4'000) == "just now");
  CHECK(ago_text(0, 42'000) == "42 s ago");
  CHECK(ago_text(0, 180'000) == "3 min ago");
  CHECK(ago_text(0, 7'200'000) == "2 h ago");
  CHECK(ago_text(0, 432'000'000) == "5 days ago");
}

TEST_CASE("a branch says where it left its parent and why, and what was abandoned is kept apart", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  std::string run_dir;
  {
    auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
    run_dir = writer->run_dir();
    for (std::int64_t step = 1; step <= 4; ++step) store_test::log(*writer, "loss", step, static_cast<double>(step));
    writer->finish(store::RunStatus::kStopped, "SIGTERM");
  }
  clock.now_ms += 60'000;
  {
    auto writer = std::move(store::RunWriter::resume({run_dir, 2, 0}, clock)).value();
    for (std::int64_t step = 3; step <= 6; ++step) {
      store_test::log(*writer, "loss", step, 10.0 * static_cast<double>(step));
    }
    writer->finish(store::RunStatus::kFinished, "6 steps are done");
  }
  const RunsContext context{output.path, clock, kPlain};
  Diagnostics diagnostics;
  const std::string page = runs_show(context, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("branches\n"
                  "  0  from the start, to step 4, abandoned after step 2; 2027-01-15 08:00:00 UTC\n"
                  "  1  from branch 0 at step 2, to step 6 (current); resumed after stopped: SIGTERM; "
                  "2027-01-15 08:01:00 UTC\n") != std::string::npos);
  const std::string head = page.substr(0, page.find("metrics"));
  CHECK(head.find("\n  step") == head.rfind("\n  step"));

  struct Case {
    const char* branch;
    const char* points;
  };
  static constexpr Case cases[] = {
      {"", "[[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, 60.0]]\n"},
      {"1", "[[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, 60.0]]\n"},
      {"0", "[[1, 1.0], [2, 2.0], [3, 3.0], [4, 4.0]]\n"},
      {"all",
       "[{\"branch\": 1, \"abandoned\": false, \"points\": [[1, 1.0], [2, 2.0], [3, 30.0], [4, 40.0], [5, 50.0], [6, "
       "60.0]]}, {\"branch\": 0, \"abandoned\": true, \"points\": [[3, 3.0], [4, 4.0]]}]\n"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.branch);
    CHECK(runs_show(context, {.run = "tiny", .metric = "loss", .format = "json", .branch = c.branch}, diagnostics) ==
          c.points);
  }
  const std::string plot =
      runs_compare(context, {.runs = {"tiny", "tiny"}, .metric = "loss", .branch = "all"}, diagnostics).value();
  CHECK(plot.find("branch 0, abandoned") != std::string::npos);
  CHECK_FALSE(diagnostics.has_errors());

  CHECK(runs_show(context, {.run = "tiny", .branch = "0"}, diagnostics).value().find("\n  loss ") != std::string::npos);
  CHECK_FALSE(runs_show(context, {.run = "tiny", .metric = "loss", .branch = "7"}, diagnostics));
  CHECK_FALSE(runs_show(context, {.run = "tiny", .branch = "all"}, diagnostics));
  CHECK(runner::core::render(diagnostics, {}) ==
        "error: " + run_dir + "/run.db has no branch 7\n  hint: it has 0 to 1\n" +
            "error: --branch all needs --metric\n"
            "  hint: add --metric NAME; without it the page lists the branches\n");
}

TEST_CASE("a branch ends at its last step, logged or not", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  std::string run_dir;
  {
    auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
    run_dir = writer->run_dir();
    store_test::log(*writer, "loss", 10, 1.0);
    writer->event("checkpoint", 14, Node::mapping());
    writer->finish(store::RunStatus::kStopped, "SIGTERM");
  }
  {
    auto writer = std::move(store::RunWriter::resume({run_dir, 14, 0}, clock)).value();
    store_test::log(*writer, "loss", 20, 1.0);
    writer->event("checkpoint", 25, Node::mapping());
    writer->finish(store::RunStatus::kFinished, "25 steps are done");
  }
  Diagnostics diagnostics;
  const std::string page = runs_show({output.path, clock, kPlain}, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("\n  0  from the start, to step 14; ") != std::string::npos);
  CHECK(page.find("\n  1  from branch 0 at step 14, to step 25 (current); ") != std::string::npos);
}

TEST_CASE("a wide table shows its last columns, and ten classes all of their rows", "[cli][runs]") {
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

TEST_CASE("a branch that a rollback opened says what was wrong", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output, "tiny"), clock);
  for (std::int64_t step = 1; step <= 3; ++step) store_test::log(*writer, "loss", step, static_cast<double>(step));
  Node what = Node::mapping();
  what.set("what", Node::string("the loss is nan"));
  writer->event("rollback", 3, what);
  writer->rewind(1);
  for (std::int64_t step = 2; step <= 5; ++step) store_test::log(*writer, "loss", step, 0.5);
  writer->finish(store::RunStatus::kFinished, "5 steps are done");
  Diagnostics diagnostics;
  const std::string page = runs_show({output.path, clock, kPlain}, {.run = "tiny"}, diagnostics).value();
  CHECK(page.find("\n  0  from the start, to step 3, abandoned after step 1; ") != std::string::npos);
  CHECK(page.find("\n  1  from branch 0 at step 1, to step 5 (current); rolled back: the loss is nan; ") !=
        std::string::npos);
}

TEST_CASE("names that were made to do harm do none in a table, in CSV and in JSON", "[cli][runs]") {
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
        "[\n  {\n    \"\u202egnp.exe\": 1.5\n  }\n]\n");
}

TEST_CASE("a page and a picture hold names as text, whatever is in them", "[cli][runs]") {
  const std::string name = "<script>alert('1')</script> & \"x\" | `y` \x1b[31m \u202e \u05d0\u05d1";
  const std::string svg = chart_svg({{name, {{1, 2}, {2, 3}}}}, {.title = name});
  auto html = html_document(name);
  auto markdown = markdown_document(name);
  for (Document* document : {html.get(), markdown.get()}) {
    document->paragraph(name);
    document->table({{name, "b"}, {name, "2"}});
    document->list({name});
    document->verbatim(name, name + "\n" + name);
    document->picture(svg, name);
  }
  for (const std::string& text : {svg, html->text(), markdown->text()}) {
    CAPTURE(text);
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\u202e") == std::string::npos);
    CHECK(text.find("\u05d0\u05d1") != std::string::npos);
  }
  CHECK(svg.find("<script") == std::string::npos);
  CHECK(html->text().find("<script") == std::string::npos);
  CHECK(markdown->text().find("| &lt;script&gt;alert(&#39;1&#39;)") != std::string::npos);
  CHECK(markdown->text().find("\\| \\`y\\`") != std::string::npos);
}

TEST_CASE("a run with a live writer stays where it is", "[cli][runs]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output), clock);
  writer->flush_durable();
  Diagnostics diagnostics;
  CHECK_FALSE(runs_remove({output.path, clock, kPlain}, {.runs = {"tiny"}, .yes = true}, diagnostics));
  REQUIRE(diagnostics.error_count() == 1);
  CHECK(diagnostics.all()[0].message.starts_with(writer->run_id() + " is running: pid "));
  writer->finish(store::RunStatus::kFinished, "");
  Diagnostics none;
  CHECK(runs_remove({output.path, clock, kPlain}, {.runs = {"tiny"}, .yes = true}, none));
  CHECK(store::list_runs(output.path, clock).empty());
}

TEST_CASE("a run is followed while it is written, and to its end", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = store_test::create(store_test::new_run(output), clock);
  const auto log = [&](std::int64_t step) {
    store_test::log(*writer, "loss", step, static_cast<double>(step));
    store_test::log(*writer, "loss", step, 10.0 * static_cast<double>(step), "val");
    writer->flush_durable();
  };
  for (std::int64_t step = 1; step <= 3; ++step) log(step);

  /// Instead of waiting, the run goes on.
  struct Meanwhile final : trackers::Waiter {
    bool wait(std::int64_t) override { return next(); }
    std::function<bool()> next;
  } meanwhile;
  int waits = 0;
  meanwhile.next = [&] {
    switch (++waits) {
      case 1: log(4); break;
      case 2: writer->rewind(2); break;
      case 3: log(3); break;
      case 4: writer->finish(store::RunStatus::kStopped, "SIGTERM"); break;
      default: return false;
    }
    return true;
  };
  std::string said;
  Diagnostics diagnostics;
  runs_tail(
      {output.path, clock, kPlain}, {.run = "tiny", .lines = 2}, [&](const std::string& line) { said += line; },
      meanwhile, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(said ==
        "step 2  loss 2  val/loss 20\n"
        "step 3  loss 3  val/loss 30\n"
        "step 4  loss 4  val/loss 40\n"
        "back to step 2\n"
        "step 3  loss 3  val/loss 30\n"
        "stopped: SIGTERM\n");

  said.clear();
  runs_tail(
      {output.path, clock, kPlain}, {.run = "tiny", .lines = 1, .metrics = {"val/*"}},
      [&](const std::string& line) { said += line; }, meanwhile, diagnostics);
  CHECK(said == "step 3  val/loss 30\nstopped: SIGTERM\n");
}

TEST_CASE("the logs of all ranks are printed one after the other, or merged by time", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  const Made made = make_run(output, clock, "tiny", "{}", 1.5);
  const std::string folder = made.run_dir + "/logs";
  std::filesystem::create_directories(folder);
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
  };
  // Rank 1 logs in JSON. Its clock went back once; the lines of a rank stay in their order.
  put("rank-0.log",
      "begun\n2027-01-15T08:00:00.250Z info step 10\n2027-01-15T08:00:02.000Z warning the disk is full\n  of logs\n");
  put("rank-1.log", R"({"time":"2027-01-15T08:00:01.000Z","level":"info","message":"b"})"
                    "\n"
                    R"({"time":"2027-01-15T08:00:00.000Z","level":"info","message":"c"})"
                    "\n");
  put("rank-10.log", "2027-01-15T08:00:02.000Z info late\nno end");
  put("rank-2.log", "2027-01-15T08:00:00.250Z info an \x1b[31mend\n");
  put("rank-3.log.old", "not a log\n");
  const auto said = [&](bool in_order) {
    std::string text;
    Diagnostics diagnostics;
    runs_logs(
        {output.path, clock, kPlain}, {.run = "tiny", .in_order = in_order},
        [&](const std::string& line) { text += line; }, diagnostics);
    CHECK_FALSE(diagnostics.has_errors());
    return text;
  };
  const std::string r0 = "[rank 0] ", r1 = "[rank 1] ", r2 = "[rank 2] ", r10 = "[rank 10] ";
  const std::string begun = r0 + "begun\n" + r0 + "2027-01-15T08:00:00.250Z info step 10\n";
  const std::string full = r0 + "2027-01-15T08:00:02.000Z warning the disk is full\n" + r0 + "  of logs\n";
  const std::string json = r1 + R"({"time":"2027-01-15T08:00:01.000Z","level":"info","message":"b"})" + "\n" + r1 +
                           R"({"time":"2027-01-15T08:00:00.000Z","level":"info","message":"c"})" + "\n";
  const std::string end = r2 + "2027-01-15T08:00:00.250Z info an \\x1b[31mend\n";
  const std::string late = r10 + "2027-01-15T08:00:02.000Z info late\n" + r10 + "no end\n";
  CHECK(said(false) == begun + full + json + end + late);
  CHECK(said(true) == begun + end + json + full + late);

  std::filesystem::remove_all(folder);
  Diagnostics diagnostics;
  runs_logs(
      {output.path, clock, kPlain}, {.run = "tiny"}, [](const std::string&) {}, diagnostics);
  REQUIRE(diagnostics.error_count() == 1);
  CHECK(diagnostics.all()[0].message == folder + " has no logs");
  CHECK(diagnostics.all()[0].hint == "the run keeps no logs of its processes");
}

TEST_CASE("axes are logarithmic, and a moving average begins where the values do", "[cli][runs]") {
  const Curve falling{"loss", {{0, 5}, {1, 100}, {10, 10}, {100, 1}, {1000, 0}}};
  CHECK(plot_text({falling}, {.width = 17, .height = 3, .x_title = "step", .log_x = true, .log_y = true}, kPlain) ==
        "100 |***\n"
        "    |   ******\n"
        "  1 |         ***\n"
        "     1   step 100\n");
  // By hand, weight 0.5: 4; (0.5 * 2 + 0.5 * 2) / 0.75 = 8 / 3; what is no number does not count.
  std::vector<std::pair<double, double>> points = {{0, 4}, {1, std::nan("")}, {2, 2}};
  smooth(points, 0.5);
  CHECK(points[0].second == 4);
  CHECK(std::isnan(points[1].second));
  CHECK(points[2].second == Approx(8.0 / 3));
}

TEST_CASE("an imported run cannot be resumed", "[cli][runs]") {
  const OutputDir output;
  FixedClock clock;
  auto own = store_test::create(store_test::new_run(output, "tiny"), clock);
  own->finish(store::RunStatus::kStopped, "SIGTERM");
  clock.now_ms += 1000;
  std::ofstream(output.path + "/tiny.csv") << "step,loss\n1,0.5\n";
  Diagnostics diagnostics;
  const auto said = runs_import({output.path, clock, kPlain}, {.paths = {output.path + "/tiny.csv"}}, diagnostics);
  REQUIRE(said);
  CHECK(said->find("  tiny: 1 metric, 1 point from ") != std::string::npos);
  const auto found = store::newest_unfinished(output.path, "tiny", clock);
  REQUIRE(found);
  CHECK(found->id == own->run_id());
}
