#include "runner/store/run_writer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <thread>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/database/text.h"
#include "runner/store/in_memory_run.h"
#include "tests/runner/store/fixture.h"
#include "tests/support/disk/full_sqlite_disk.h"
#include "tests/support/process/forked.h"

namespace {

using namespace runner::store;
using store_test::create;
using store_test::FixedClock;
using store_test::log;
using store_test::new_run;
using store_test::OutputDir;

std::vector<std::pair<std::int64_t, double>> series(const std::string& run_dir, const std::string& name,
                                                    const std::string& context = "train", std::int64_t branch = -1) {
  std::vector<std::pair<std::int64_t, double>> points;
  const auto read = read_series(run_dir, name, context, branch);
  for (const SeriesPoint& point : read.value()) points.emplace_back(point.step, point.value);
  return points;
}

using Points = std::vector<std::pair<std::int64_t, double>>;

std::string text_of(const std::string& path) { return runner::core::read_file(path, 1 << 20).value(); }

}  // namespace

TEST_CASE("a finished run is one database file with everything that was logged", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = create(new_run(output), clock);
  const std::string run_dir = writer->run_dir();
  log(*writer, "loss", 1, 2.5);
  log(*writer, "loss", 2, 1.5);
  log(*writer, "loss", 2, 1.25);
  log(*writer, "loss", 2, 3.0, "val");
  writer->event("eval", 2, runner::core::Node::mapping());
  CHECK(writer->last_row() == 4);
  CHECK(writer->flush_durable() == 4);
  writer->finish(RunStatus::kFinished, "2 steps are done");

  CHECK(series(run_dir, "loss") == Points{{1, 2.5}, {2, 1.25}});
  CHECK(series(run_dir, "loss", "val") == Points{{2, 3.0}});
  CHECK(series(run_dir, "val/loss") == Points{{2, 3.0}});
  CHECK(text_of(run_dir + "/recipe.yaml") == "run_name: tiny\n");
  CHECK(text_of(run_dir + "/recipe/lib/base.yaml") == "seed: 1\n");
  CHECK(text_of(run_dir + "/lease").empty());
  CHECK_FALSE(std::filesystem::exists(run_dir + "/run.db-wal"));

  const auto run = std::move(find_run(output.path, "last", clock)).value();
  CHECK(run.status == RunStatus::kFinished);
  CHECK(run.reason == "2 steps are done");
  CHECK(run.step == 2);
  CHECK(run.metrics == std::map<std::string, double>{{"loss", 1.25}, {"val/loss", 3.0}});
  CHECK(run.resolved.at_path("optimizer.type")->as_string() == "adamw");
  CHECK_FALSE(run.owner);
}

TEST_CASE("a light run says what another one says", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  NewRun run = new_run(output);
  run.light = std::make_shared<InMemoryRun>();
  const bool is_flushed = GENERATE(false, true);
  CAPTURE(is_flushed);
  auto writer = create(run, clock);
  const std::string run_dir = writer->run_dir();
  log(*writer, "loss", 1, 2.5);
  if (is_flushed) {
    CHECK(writer->flush_durable() == 1);
    CHECK(series(run_dir, "loss") == Points{{1, 2.5}});
  }
  log(*writer, "loss", 2, 1.25);
  writer->event("eval", 2, runner::core::Node::mapping());
  writer->finish(RunStatus::kFinished, "2 steps are done");

  CHECK(series(run_dir, "loss") == Points{{1, 2.5}, {2, 1.25}});
  CHECK(text_of(run_dir + "/recipe/lib/base.yaml") == "seed: 1\n");
  for (const char* beside : {"/run.db-wal", "/run.db-journal", "/run.db.new", "/annotations.db.new"}) {
    CHECK_FALSE(std::filesystem::exists(run_dir + beside));
  }
  const auto found = std::move(find_run(output.path, "last", clock)).value();
  CHECK(found.status == RunStatus::kFinished);
  CHECK(found.reason == "2 steps are done");
  CHECK(found.metrics == std::map<std::string, double>{{"loss", 1.25}});
  CHECK(found.notes.empty());
  auto again = RunWriter::resume({run_dir, 1, 0}, clock);
  REQUIRE(again);
  again.value()->finish(RunStatus::kStopped, "");
}

TEST_CASE("a run has the id that was chosen for it, and no other has it", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  NewRun run = new_run(output);
  run.id = new_run_id(clock.wall_ms());
  const auto writer = create(run, clock);
  CHECK(writer->run_id() == run.id);
  CHECK(writer->run_dir() == output.path + "/tiny-" + run.id);
  CHECK_FALSE(RunWriter::create(run, clock));
}

TEST_CASE("NaN and infinities are read back as written", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = create(new_run(output), clock);
  log(*writer, "loss", 1, std::numeric_limits<double>::quiet_NaN());
  log(*writer, "loss", 2, std::numeric_limits<double>::infinity());
  log(*writer, "loss", 3, -std::numeric_limits<double>::infinity());
  log(*writer, "loss", 4, 5e-324);
  const std::string run_dir = writer->run_dir();
  writer->finish(RunStatus::kFinished, "");
  const auto points = series(run_dir, "loss");
  REQUIRE(points.size() == 4);
  CHECK(std::isnan(points[0].second));
  CHECK(points[1].second == std::numeric_limits<double>::infinity());
  CHECK(points[2].second == -std::numeric_limits<double>::infinity());
  CHECK(points[3].second == 5e-324);
}

TEST_CASE("a live run is held by its process, and no other gets it", "[store][lease]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = create(new_run(output), clock);
  writer->flush_durable();
  const auto run = newest_unfinished(output.path, "tiny", clock);
  REQUIRE(run);
  REQUIRE(run->owner);
  CHECK(run->status == RunStatus::kRunning);
  CHECK(run->owner->pid == getpid());
  CHECK(run->owner->since_ms == clock.now_ms);

  const auto second = RunWriter::resume({writer->run_dir(), 0, 0}, clock);
  REQUIRE_FALSE(second);
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  CHECK(second.failure().message == writer->run_dir() + " is in use by pid " + std::to_string(getpid()) + " on " +
                                        host + " since 2027-01-15 08:00:00 UTC");
  CHECK(second.failure().hint == "wait for it, stop it, or start another run with `roux run RECIPE --new`");

  clock.now_ms += 24 * 3600 * 1000;  // an old heartbeat does not matter while the process lives
  CHECK(newest_unfinished(output.path, "tiny", clock)->owner);
}

TEST_CASE("another host's lease holds until its heartbeat is a minute old", "[store][lease]") {
  const OutputDir output;
  FixedClock clock;
  auto writer = create(new_run(output), clock);
  writer->flush_durable();
  const std::string run_dir = writer->run_dir();
  writer->finish(RunStatus::kStopped, "");
  {
    Database database(run_db_path(run_dir), Database::Mode::kWrite);
    database.execute("UPDATE info SET value = 'running' WHERE key = 'status'");
  }
  std::ofstream(run_dir + "/lease") << R"({"format": 1, "host": "far", "pid": 1, "process_start": "1", "boot_id": "x",)"
                                    << R"("token": "t", "since_ms": 1799999000000, "heartbeat_ms": )"
                                    << clock.now_ms - 59'000 << "}";
  const auto held = newest_unfinished(output.path, "tiny", clock);
  REQUIRE(held->owner);
  CHECK(held->owner->host == "far");
  CHECK(RunWriter::resume({run_dir, 0, 0}, clock).failure().message ==
        run_dir + " is in use by pid 1 on far since 2027-01-15 07:43:20 UTC");
  clock.now_ms += 2'000;
  CHECK_FALSE(newest_unfinished(output.path, "tiny", clock)->owner);
  CHECK(newest_unfinished(output.path, "tiny", clock)->status == RunStatus::kCrashed);
  CHECK(RunWriter::resume({run_dir, 0, 0}, clock).ok());
}

TEST_CASE("a killed process leaves a readable run that shows as crashed", "[store][crash]") {
  const OutputDir output;
  const FixedClock clock;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    auto writer = create(new_run(output), clock);
    for (std::int64_t step = 1; step <= 500; ++step) log(*writer, "loss", step, 1.0 / static_cast<double>(step));
    writer->flush_durable();
    (void)!write(ready[1], "x", 1);
    for (std::int64_t step = 501;; ++step) log(*writer, "loss", step, 0.0);  // killed somewhere in here
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK(newest_unfinished(output.path, "tiny", clock)->owner->pid == child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);

  auto run = newest_unfinished(output.path, "tiny", clock);
  REQUIRE(run);
  CHECK(run->status == RunStatus::kCrashed);
  CHECK(run->reason == "its process ended without a status");
  const auto points = series(run->run_dir, "loss");
  REQUIRE(points.size() >= 500);
  for (std::size_t i = 0; i < points.size(); ++i) REQUIRE(points[i].first == static_cast<std::int64_t>(i) + 1);
  {
    const Database database(run_db_path(run->run_dir), Database::Mode::kRead);
    Statement check = database.prepare("PRAGMA integrity_check");
    REQUIRE(check.step());
    CHECK(check.text(0) == "ok");
  }

  auto resumed = std::move(RunWriter::resume({run->run_dir, 300, 0}, clock)).value();
  CHECK(resumed->branch() == 1);
  CHECK(resumed->run_id() == run->id);
  log(*resumed, "loss", 301, 7.0);
  resumed->finish(RunStatus::kFinished, "");
  const auto lineage = series(run->run_dir, "loss");
  REQUIRE(lineage.size() == 301);
  CHECK(lineage[299] == std::pair<std::int64_t, double>{300, 1.0 / 300});
  CHECK(lineage[300] == std::pair<std::int64_t, double>{301, 7.0});
  CHECK(series(run->run_dir, "loss", "train", 0).size() == points.size());
}

TEST_CASE("a lineage holds each step once and leaves abandoned branches out", "[store][branch]") {
  const OutputDir output;
  const FixedClock clock;
  auto first = create(new_run(output), clock);
  const std::string run_dir = first->run_dir();
  for (const std::int64_t step : {0, 1, 2, 3, 4}) log(*first, "loss", step, 0.0 + static_cast<double>(step));
  first->finish(RunStatus::kStopped, "");
  auto second = std::move(RunWriter::resume({run_dir, 2, 0}, clock)).value();  // 3 and 4 are abandoned
  for (const std::int64_t step : {2, 3, 4, 5}) log(*second, "loss", step, 10.0 + static_cast<double>(step));
  second->finish(RunStatus::kStopped, "");
  auto third = std::move(RunWriter::resume({run_dir, 4, 1}, clock)).value();
  log(*third, "loss", 5, 25.0);
  log(*third, "accuracy", 5, 0.5);
  third->finish(RunStatus::kStopped, "");
  auto fourth = std::move(RunWriter::resume({run_dir, 1, 0}, clock)).value();  // back to the first one's checkpoint
  log(*fourth, "loss", 2, 32.0);
  fourth->finish(RunStatus::kFinished, "");

  CHECK(series(run_dir, "loss", "train", 0) == Points{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}});
  CHECK(series(run_dir, "loss", "train", 1) == Points{{0, 0}, {1, 1}, {2, 12}, {3, 13}, {4, 14}, {5, 15}});
  CHECK(series(run_dir, "loss", "train", 2) == Points{{0, 0}, {1, 1}, {2, 12}, {3, 13}, {4, 14}, {5, 25}});
  CHECK(series(run_dir, "loss") == Points{{0, 0}, {1, 1}, {2, 32}});
  CHECK(series(run_dir, "accuracy").empty());
  const auto run = std::move(find_run(output.path, "tiny", clock)).value();
  CHECK(run.branch == 3);
  CHECK(run.step == 2);
  CHECK(run.metrics == std::map<std::string, double>{{"loss", 32.0}});

  const auto wrong = RunWriter::resume({run_dir, 1, 9}, clock);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.failure().message == run_dir + "/run.db has no branch 9");
  CHECK(find_run(output.path, "tiny", clock).value().status == RunStatus::kFinished);
}

TEST_CASE("a rewind opens a branch without a pause, and each step exists once", "[store][branch]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = create(new_run(output), clock);
  const std::string run_dir = writer->run_dir();
  for (const std::int64_t step : {1, 2, 3, 4}) log(*writer, "loss", step, static_cast<double>(step));
  writer->event("rollback", 4, runner::core::Node::mapping());
  writer->rewind(2);
  CHECK(writer->branch() == 1);
  for (const std::int64_t step : {3, 4, 5}) log(*writer, "loss", step, 10.0 + static_cast<double>(step));
  writer->event("finish", 5, runner::core::Node::mapping());
  writer->finish(RunStatus::kFinished, "done");

  CHECK(series(run_dir, "loss") == Points{{1, 1.0}, {2, 2.0}, {3, 13.0}, {4, 14.0}, {5, 15.0}});
  CHECK(series(run_dir, "loss", "train", 0) == Points{{1, 1.0}, {2, 2.0}, {3, 3.0}, {4, 4.0}});
  const auto details = read_details(run_dir);
  REQUIRE(details.value().branches.size() == 2);
  CHECK(details.value().branches[1].parent == 0);
  CHECK(details.value().branches[1].step == 2);
  REQUIRE(details.value().events.size() == 2);
  CHECK(details.value().events[0].branch == 0);
  CHECK(details.value().events[1].branch == 1);
}

TEST_CASE("a full disk is waited for and nothing is lost", "[store][crash]") {
  const OutputDir output;
  const FixedClock clock;
  const pid_t child = fork();
  if (child == 0) {
    tests::FullSqliteDisk disk;
    auto writer = create(new_run(output), clock);
    writer->flush_durable();
    disk.fill();
    for (std::int64_t step = 1; step <= 20'000; ++step) log(*writer, "loss", step, 1.0);
    while (disk.refused() == 0) std::this_thread::yield();
    disk.make_room();
    const bool all = writer->flush_durable() == 20'000;
    writer->finish(RunStatus::kFinished, "");
    _exit(all ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(find_run(output.path, "last", clock).value().status == RunStatus::kFinished);
  CHECK(series(find_run(output.path, "last", clock).value().run_dir, "loss").size() == 20'000);
}

TEST_CASE("a lock of another program is not reported as a full disk", "[store][crash]") {
  const OutputDir output;
  const FixedClock clock;
  auto writer = create(new_run(output), clock);
  writer->flush_durable();
  const std::string run_db = writer->run_dir() + "/run.db";
  {
    Database other(run_db, Database::Mode::kWrite);
    const Transaction held(other);
    log(*writer, "loss", 1, 2.5);
    CHECK_THROWS_WITH(writer->flush_durable(-1), "another program holds a lock on " + run_db);
  }
  CHECK(writer->finish(RunStatus::kFinished, ""));
}

TEST_CASE("the full-disk timeout ends writing and keeps accepted data", "[store][crash]") {
  const OutputDir output;
  const FixedClock clock;
  const pid_t child = fork();
  if (child == 0) {
    tests::FullSqliteDisk disk;
    auto writer = create(new_run(output), clock);
    writer->flush_durable();
    disk.fill();
    writer->set_disk_timeout({0});
    bool refused = false;
    std::int64_t step = 0;
    while (!refused && step < 100'000'000) {
      try {
        log(*writer, "loss", step + 1, 1.0);
        ++step;
      } catch (const runner::core::RunError& error) {
        refused = error.exit_code() == runner::core::kExitResumable;
      }
    }
    disk.make_room();
    const bool complete = writer->finish(RunStatus::kStopped, "");
    const std::string run_dir = writer->run_dir();
    writer.reset();
    _exit(refused && complete && series(run_dir, "loss").size() == static_cast<std::size_t>(step) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a record that meets `ulimit -f` is an error and not a full disk", "[store][crash]") {
  const OutputDir output;
  const FixedClock clock;
  CHECK(tests::end_of_fork([&] {
          signal(SIGXFSZ, SIG_IGN);
          auto writer = create(new_run(output), clock);
          writer->flush_durable();
          const rlimit small{64 << 10, RLIM_INFINITY};
          setrlimit(RLIMIT_FSIZE, &small);
          try {
            for (std::int64_t step = 1; step < 100'000'000; ++step) log(*writer, "loss", step, 1.0);
          } catch (const runner::core::RunError& error) {
            const bool told = error.what() == writer->run_dir() + "/run.db: `ulimit -f` allows no file of this size" &&
                              error.hint() == "raise the limit; the same command then resumes";
            return told && error.exit_code() == runner::core::kExitFailed ? 0 : 1;
          }
          return 2;
        }) == 0);
}

TEST_CASE("a FIFO in the place of a file of a run is refused, not waited for", "[store]") {
  const OutputDir output;
  for (const auto mode : {Database::Mode::kRead, Database::Mode::kWrite, Database::Mode::kCreate}) {
    const std::string path = output.path + "/annotations.db";
    if (mode == Database::Mode::kRead) REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK_THROWS_WITH(Database(path, mode), "cannot read " + path + ": it is not a regular file");
  }
  CHECK_THROWS_WITH(Database(output.path, Database::Mode::kRead), "cannot read " + output.path + ": it is a folder");
  // SQLite looks at what lies beside a database, too.
  const std::string whole = output.path + "/run.db";
  Database(whole, Database::Mode::kCreate).execute("CREATE TABLE t(x)");
  for (const char* ending : {"-wal", "-journal"}) {
    REQUIRE(mkfifo((whole + ending).c_str(), 0600) == 0);
    for (const auto mode : {Database::Mode::kRead, Database::Mode::kWrite, Database::Mode::kCreate}) {
      CHECK_THROWS_WITH(Database(whole, mode), "cannot read " + whole + ending + ": it is not a regular file");
    }
    std::filesystem::remove(whole + ending);
  }
}

TEST_CASE("a run that is moved, removed or damaged while it is written notices", "[store][crash][22]") {
  using Path = std::filesystem::path;
  static const auto overwrite = [](const Path& path, std::int64_t at, std::size_t bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at) << std::string(bytes, 'x');
  };
  struct Case {
    const char* name;
    std::function<void(const Path& run_dir)> harm;
    const char* message;  ///< DIR stands for the run's folder
  };
  const Case cases[] = {
      {"moved", [](const Path& dir) { rename(dir, dir.string() + "-moved"); },
       "the run's folder DIR was moved or removed during the run"},
      {"removed", [](const Path& dir) { remove_all(dir); }, "the run's folder DIR was moved or removed during the run"},
      {"run.db removed", [](const Path& dir) { remove(dir / "run.db"); },
       "DIR/run.db was moved, removed or replaced during the run"},
      {"run.db replaced",
       [](const Path& dir) {
         std::filesystem::copy(dir / "run.db", dir / "other");
         rename(dir / "other", dir / "run.db");
       },
       "DIR/run.db was moved, removed or replaced during the run"},
      {"run.db cut", [](const Path& dir) { resize_file(dir / "run.db", 5000); },
       "another program has overwritten or cut DIR/run.db during the run"},
      {"run.db overwritten", [](const Path& dir) { overwrite(dir / "run.db", 0, 5000); },
       "another program has overwritten or cut DIR/run.db during the run"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const OutputDir output;
      const FixedClock clock;
      auto writer = create(new_run(output), clock);
      const std::string run_dir = writer->run_dir();
      log(*writer, "loss", 1, 2.5);
      writer->flush_durable();
      c.harm(run_dir);
      std::string message = c.message;
      message.replace(message.find("DIR"), 3, run_dir);
      const auto write_on = [&] {
        log(*writer, "loss", 2, 1.5);
        writer->flush_durable();
      };
      CHECK_THROWS_WITH(write_on(), message);
      CHECK_THROWS_WITH(log(*writer, "loss", 3, 1.5), message);
      CHECK_FALSE(writer->finish(RunStatus::kFinished, ""));
      CHECK_THROWS_WITH(writer->throw_if_failed(), message);
      if (std::filesystem::exists(run_dir + "-moved")) {
        CHECK(series(run_dir + "-moved", "loss").front() == Points::value_type(1, 2.5));
        CHECK(RunWriter::resume({run_dir + "-moved", 1, 0}, clock).ok());
      }
    }
  }
  SECTION("a part of run.db that it remembers, which shows in the end") {
    const OutputDir output;
    const FixedClock clock;
    auto writer = create(new_run(output), clock);
    const std::string run_db = writer->run_dir() + "/run.db";
    for (int step = 1; step <= 5000; ++step) log(*writer, "loss", step, 2.5);
    writer->flush_durable();
    overwrite(run_db, 20 * 4096, 2 * 4096);  // of the metrics' pages, which the end of the run does not touch
    CHECK_FALSE(writer->finish(RunStatus::kFinished, ""));
    CHECK_THROWS_WITH(writer->throw_if_failed(),
                      "another program has overwritten or cut " + run_db + " during the run");
  }
}

TEST_CASE("half a transaction of a killed writer is taken back where WAL is not used", "[store][crash]") {
  const OutputDir output;
  const std::string path = output.path + "/torn.db";
  const pid_t child = fork();
  if (child == 0) {
    Database database(path, Database::Mode::kCreate);
    database.execute(
        "PRAGMA journal_mode=DELETE; CREATE TABLE t(x); INSERT INTO t VALUES(1); PRAGMA cache_size=1; BEGIN");
    for (int i = 0; i < 1000; ++i) database.execute("INSERT INTO t VALUES(randomblob(1000))");
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  REQUIRE(std::filesystem::file_size(path) > 100'000);  // pages of the open transaction are in the file
  const Database database(path, Database::Mode::kRead);
  Statement count = database.prepare("SELECT count(*) FROM t");
  REQUIRE(count.step());
  CHECK(count.integer(0) == 1);
}

TEST_CASE("what cannot be made is said at once", "[store][writer]") {
  const FixedClock clock;
  OutputDir output;
  std::ofstream(output.path + "/file") << "x";
  NewRun run = new_run(output);
  run.output_dir = output.path + "/file/runs";
  const auto writer = RunWriter::create(run, clock);
  REQUIRE_FALSE(writer);
  CHECK(writer.failure().message ==
        "cannot create the folder " + output.path + "/file/runs: part of the path is not a folder");
  CHECK(RunWriter::resume({output.path, 0, 0}, clock).failure().message == "there is no run in " + output.path);
}

TEST_CASE("a writer that leaves without finish() has failed", "[store][writer]") {
  const OutputDir output;
  const FixedClock clock;
  create(new_run(output), clock).reset();
  const auto run = std::move(find_run(output.path, "last", clock)).value();
  CHECK(run.status == RunStatus::kFailed);
  CHECK(run.reason == "the process exited without a status");
  CHECK_FALSE(newest_unfinished(output.path, "tiny", clock));
}

TEST_CASE("run ids sort by time and are read back from a folder's name", "[store]") {
  CHECK(new_run_id(1'800'000'000'000) < new_run_id(1'800'000'000'001));
  const std::string id = new_run_id(1'800'000'000'123);
  const auto name = parse_folder_name("tiny-gpt-" + id);
  REQUIRE(name);
  CHECK(name->run_name == "tiny-gpt");
  CHECK(name->id == id);
  CHECK(name->created_ms == 1'800'000'000'123);
  CHECK_FALSE(parse_folder_name("tiny-gpt"));
  CHECK_FALSE(parse_folder_name("-" + id));
}

TEST_CASE("WAL is kept away from file systems without shared memory", "[store]") {
  CHECK(wal_is_safe(0xEF53));            // ext4
  CHECK(wal_is_safe(0x01021994));        // tmpfs
  CHECK_FALSE(wal_is_safe(0x6969));      // NFS
  CHECK_FALSE(wal_is_safe(0xFF534D42));  // CIFS
  CHECK_FALSE(wal_is_safe(0x0BD00BD0));  // Lustre
}
