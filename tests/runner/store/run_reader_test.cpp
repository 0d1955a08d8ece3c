#include "runner/store/run_reader.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "runner/core/json.h"
#include "runner/store/annotations.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/run_index.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::store;
using namespace std::chrono_literals;
using store_test::create;
using store_test::FixedClock;
using store_test::log;
using store_test::new_run;
using store_test::OutputDir;

std::string finished_run(const OutputDir& output, const FixedClock& clock, const std::string& name, double loss,
                         bool smoke = false, RunStatus status = RunStatus::kFinished) {
  NewRun run = new_run(output, name);
  run.smoke = smoke;
  auto writer = create(run, clock);
  log(*writer, "loss", 10, loss);
  const std::string id = writer->run_id();
  writer->finish(status, "");
  return id;
}

std::vector<std::string> ids(const std::vector<RunSummary>& runs) {
  std::vector<std::string> all;
  for (const RunSummary& run : runs) all.push_back(run.id);
  return all;
}

std::int64_t indexed(const OutputDir& output) {
  const Database database(output.path + "/index.db", Database::Mode::kRead);
  Statement count = database.prepare("SELECT count(*) FROM runs");
  return count.step() ? count.integer(0) : -1;
}

}  // namespace

TEST_CASE("runs are listed newest first, from the index or without it", "[store][reader]") {
  const OutputDir output;
  FixedClock clock;
  const std::string a = finished_run(output, clock, "a", 1.0);
  clock.now_ms += 1000;
  const std::string b = finished_run(output, clock, "b", 2.0);
  std::filesystem::create_directory(output.path + "/not-a-run");
  clock.now_ms += 3'600'000'000'000;                          // long after the files' own times
  for (const std::string& folder : {"/a-" + a, "/b-" + b}) {  // what happens to them now has another time of its own
    std::filesystem::last_write_time(output.path + folder, std::filesystem::file_time_type::clock::now() - 1h);
  }

  const std::vector<std::string> both = {b, a};
  CHECK(ids(list_runs(output.path, clock)) == both);
  CHECK(indexed(output) == 2);
  CHECK(list_runs(output.path, clock)[1].metrics == std::map<std::string, double>{{"loss", 1.0}});
  CHECK(list_runs(output.path, clock)[1].resolved.at_path("optimizer.lr")->as_double() == 0.001);

  SECTION("an index that is no database is rebuilt") {
    std::ofstream(output.path + "/index.db", std::ios::trunc) << std::string(8192, 'x');
    CHECK(ids(list_runs(output.path, clock)) == both);
    CHECK(indexed(output) == 2);
  }
  SECTION("an index of another format is rebuilt") {
    Database(output.path + "/index.db", Database::Mode::kWrite).execute("PRAGMA user_version=99");
    CHECK(ids(list_runs(output.path, clock)) == both);
    CHECK(indexed(output) == 2);
  }
  SECTION("a missing index is rebuilt") {
    std::filesystem::remove(output.path + "/index.db");
    CHECK(ids(list_runs(output.path, clock)) == both);
    CHECK(indexed(output) == 2);
  }
  SECTION("what is said about a run that has ended is seen at once") {
    add_tags(output.path + "/a-" + a, {"keep"});
    CHECK(list_runs(output.path, clock)[1].tags == std::vector<std::string>{"keep"});
  }
  SECTION("values of recipes come from the index, and from the recipe where the index does not know the run") {
    std::ofstream(output.path + "/a-" + a + "/resolved.json", std::ios::trunc) << "no recipe";
    auto runs = list_runs(output.path, clock, {.with_recipe = false});
    const std::vector<std::string> names = {"optimizer.lr", "optimizer", "no.such.key"};
    read_recipe_values(output.path, names, runs);
    for (const RunSummary& run : runs) {
      CHECK(runner::core::to_json(run.resolved, -1) == R"({"optimizer": {"lr": 0.001, "type": "adamw"}})");
    }
    std::filesystem::remove(output.path + "/index.db");
    read_recipe_values(output.path, names, runs);
    CHECK(runs[0].resolved.at_path("training.max_steps")->as_integer() == 10);
    CHECK(runs[1].resolved.is_null());
  }
  SECTION("what an earlier version recorded has the words of today") {
    std::ofstream(output.path + "/a-" + a + "/resolved.json") << R"({"loader": {"pad_in_loss": true}})";
    CHECK(list_runs(output.path, clock)[1].resolved.at_path("loader.count_repeated_samples")->as_bool());
    auto runs = list_runs(output.path, clock, {.with_recipe = false});
    RunIndex(output.path).store({{"a-" + a, {"", runs[1], "\n\"loader.pad_in_loss\":true\n"}}}, {});
    for (const char* name : {"loader.pad_in_loss", "loader.count_repeated_samples"}) {
      read_recipe_values(output.path, {name}, runs);
      CHECK(runner::core::to_json(runs[1].resolved, -1) == R"({"loader": {"count_repeated_samples": true}})");
    }
  }
  SECTION("a run that goes on is read again, one that is gone is forgotten") {
    const std::string run_dir = output.path + "/a-" + a;
    auto writer = std::move(RunWriter::resume({run_dir, 10, 0}, clock)).value();
    log(*writer, "loss", 11, 0.5);
    writer->finish(RunStatus::kFinished, "");
    std::filesystem::remove_all(output.path + "/b-" + b);
    const auto runs = list_runs(output.path, clock);
    REQUIRE(ids(runs) == std::vector<std::string>{a});
    CHECK(runs[0].metrics.at("loss") == 0.5);
    CHECK(indexed(output) == 1);
  }
}

TEST_CASE("one damaged run does not hide the others", "[store][reader]") {
  struct Case {
    const char* name;
    void (*damage)(const std::string& path);
    const char* reason;
  };
  static constexpr Case cases[] = {
      {"not a database", [](const std::string& path) { std::ofstream(path) << std::string(9000, 'x'); },
       "/run.db: file is not a database"},
      {"of a newer format",
       [](const std::string& path) { Database(path, Database::Mode::kWrite).execute("PRAGMA user_version=2"); },
       "/run.db has format 2, this version of roux reads up to format 1"},
      {"of another program",
       [](const std::string& path) { Database(path, Database::Mode::kWrite).execute("PRAGMA application_id=7"); },
       "/run.db is not a database of roux"},
      {"without its tables",
       [](const std::string& path) { Database(path, Database::Mode::kWrite).execute("DROP TABLE branches"); },
       "/run.db: no such table: branches"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const OutputDir output;
      FixedClock clock;
      const std::string good = finished_run(output, clock, "good", 1.0);
      clock.now_ms += 1000;
      const std::string bad = finished_run(output, clock, "bad", 1.0);
      const std::string run_dir = output.path + "/bad-" + bad;
      c.damage(run_dir + "/run.db");
      const auto runs = list_runs(output.path, clock);
      REQUIRE(runs.size() == 2);
      CHECK(runs[0].status == RunStatus::kUnreadable);
      CHECK(runs[0].reason == run_dir + c.reason);
      CHECK(runs[0].id == bad);
      CHECK(runs[1].id == good);
      CHECK(runs[1].status == RunStatus::kFinished);
      CHECK_FALSE(read_series(run_dir, "loss"));
    }
  }
}

TEST_CASE("a run is found by id, name, folder, prefix and path", "[store][reader]") {
  const OutputDir output;
  FixedClock clock;
  const std::string a = finished_run(output, clock, "tiny", 1.0);
  clock.now_ms += 1000;
  const std::string b = finished_run(output, clock, "tiny", 2.0);
  clock.now_ms += 1000;
  const std::string c = finished_run(output, clock, "large", 3.0, true);
  const auto found = [&](const std::string& text) { return std::move(find_run(output.path, text, clock)).value().id; };
  CHECK(found("last") == c);
  CHECK(found(a) == a);
  CHECK(found("tiny") == b);
  CHECK(found("tiny-" + a) == a);
  CHECK(found(output.path + "/tiny-" + a) == a);
  CHECK(found(output.path + "/tiny-" + a + "/") == a);
  CHECK(found(c.substr(0, 8)) == c);

  const std::string shared = a.substr(0, 4);
  const auto many = find_run(output.path, shared, clock);
  REQUIRE_FALSE(many);
  CHECK(many.failure().message ==
        "\"" + shared + "\" fits 3 runs in " + output.path + ": " + c + " (large), " + b + " (tiny), " + a + " (tiny)");
  CHECK(many.failure().hint == "write more of the id");
  const auto none = find_run(output.path, "tinny", clock);
  REQUIRE_FALSE(none);
  CHECK(none.failure().message == "no run in " + output.path + " is called \"tinny\"");
  CHECK(none.failure().hint == "did you mean \"tiny\"? `roux runs list` shows all 3");
  const auto checkpoint = find_run(output.path, "tiny:best", clock);
  REQUIRE_FALSE(checkpoint);
  CHECK(checkpoint.failure().message == "\"tiny:best\" names a checkpoint, and a run is named here");
  CHECK(checkpoint.failure().hint == "write tiny; `roux resume tiny --checkpoint best` resumes from it");
  const OutputDir empty;
  CHECK(find_run(empty.path, "last", clock).failure().message == "no runs in folder " + empty.path);
  CHECK(list_runs(empty.path + "/missing", clock).empty());
}

TEST_CASE("auto resumes the newest run that was stopped or crashed", "[store][reader]") {
  const OutputDir output;
  FixedClock clock;
  CHECK_FALSE(newest_unfinished(output.path, "tiny", clock));
  const std::string stopped = finished_run(output, clock, "tiny", 1.0, false, RunStatus::kStopped);
  clock.now_ms += 1000;
  finished_run(output, clock, "tiny", 1.0, true);                          // smoke: passed over
  finished_run(output, clock, "tiny-2", 1.0, false, RunStatus::kStopped);  // another name that begins the same
  CHECK(newest_unfinished(output.path, "tiny", clock)->id == stopped);
  clock.now_ms += 1000;
  const std::string crashed = finished_run(output, clock, "tiny", 1.0, false, RunStatus::kCrashed);
  CHECK(newest_unfinished(output.path, "tiny", clock)->id == crashed);
  CHECK(find_run(output.path, crashed, clock).value().status == RunStatus::kCrashed);
  clock.now_ms += 1000;
  finished_run(output, clock, "tiny", 1.0, false, RunStatus::kFailed);
  CHECK_FALSE(newest_unfinished(output.path, "tiny", clock));
}

TEST_CASE("a metric that is not there is named with those that are", "[store][reader]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string id = finished_run(output, clock, "tiny", 1.0);
  const auto missing = read_series(output.path + "/tiny-" + id, "los");
  REQUIRE_FALSE(missing);
  CHECK(missing.failure().message == "tiny-" + id + " has no metric \"los\"");
  CHECK(missing.failure().hint == "did you mean \"loss\"? it has loss");
}

TEST_CASE("the page of a run has its series, events and branches", "[store][reader]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = create(new_run(output), clock);
  log(*writer, "loss", 1, 3.0);
  log(*writer, "loss", 2, 1.0);
  log(*writer, "loss", 3, 2.0);
  runner::core::Node data = runner::core::Node::mapping();
  data.set("text", runner::core::Node::string("once upon"));
  writer->event("text", 3, data);
  const std::string run_dir = writer->run_dir();
  writer->finish(RunStatus::kFinished, "");
  const auto details = std::move(read_details(run_dir)).value();
  REQUIRE(details.series.size() == 1);
  CHECK(details.series[0].first == 3.0);
  CHECK(details.series[0].last == 2.0);
  CHECK(details.series[0].minimum == 1.0);
  CHECK(details.series[0].minimum_step == 2);
  REQUIRE(details.events.size() == 1);
  CHECK(details.events[0].data.at_path("text")->as_string() == "once upon");
  REQUIRE(details.branches.size() == 1);
  CHECK(details.branches[0].parent == -1);
  CHECK(details.command_line == std::vector<std::string>{"roux", "run", "recipe.yaml"});
}

TEST_CASE("names, tags and notes of a run are read from annotations.db", "[store][reader]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string id = finished_run(output, clock, "tiny", 1.0);
  const std::string run_dir = output.path + "/tiny-" + id;
  Database(annotations_db_path(run_dir), Database::Mode::kWrite)
      .execute(
          "INSERT INTO info VALUES('name', 'the good one'); INSERT INTO tags VALUES('paper');"
          "INSERT INTO notes VALUES(1, 5, 'seed 3')");
  const auto run = std::move(find_run(output.path, "the good one", clock)).value();
  CHECK(run.id == id);
  CHECK(run.tags == std::vector<std::string>{"paper"});
  CHECK(read_annotations(run_dir).notes == std::vector<std::pair<std::int64_t, std::string>>{{5, "seed 3"}});
}
