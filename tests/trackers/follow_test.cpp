#include "trackers/follow.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "runner/store/feed/cursors.h"
#include "runner/store/feed/tracker_lock.h"
#include "runner/store/run_writer.h"
#include "tests/runner/store/fixture.h"
#include "tests/trackers/followed_run.h"

namespace {

using namespace trackers;
using runner::core::Node;
using runner::store::RunStatus;
using runner::store::RunWriter;
using store_test::FixedClock;
using Remedy = TrackerError::Remedy;
using Lines = std::vector<std::string>;

/// A tool that holds what was flushed, and fails when it is told to.
class Tool final : public Tracker {
 public:
  void start(const Run&, const Node& state) override {
    ++starts;
    fail_if(starts_fail);
    kept.resize(state.is_mapping() ? static_cast<std::size_t>(state.find("lines")->as_integer()) : 0);
    given = kept;
  }
  void rewind(std::int64_t step) override { given.push_back("back to " + std::to_string(step)); }
  bool restarts_after_rewind() const override { return restarts; }
  void log(std::span<const Point> points) override {
    fail_if(logs_fail);
    for (const Point& point : points) {
      given.push_back(*point.name + "@" + std::to_string(point.step) + "=" +
                      std::to_string(static_cast<int>(point.value)));
    }
  }
  std::int64_t rejected_points() const override { return without_place; }
  void log_text(const Text& text) override { given.push_back(text.name + ": " + text.text); }
  void log_image(const Image& image) override { given.push_back("image " + image.name); }
  void log_table(const Table& table) override {
    std::string line = "table " + table.name + ":";
    for (const std::string& column : table.columns) line += " " + column;
    for (const auto& row : table.rows) {
      for (const Node& cell : row) line += " " + cell.scalar_text();
    }
    given.push_back(line);
  }
  void log_console(std::span<const ConsoleLine> lines) override {
    for (const ConsoleLine& line : lines) given.push_back((line.is_error ? "! " : "> ") + line.text);
  }
  void log_artifact(const Artifact& artifact) override { given.push_back(artifact.kind + " " + artifact.name); }
  void flush(bool) override {
    fail_if(flushes_fail);
    kept = given;
  }
  Node state() const override {
    Node state = Node::mapping();
    state.set("lines", Node::integer(static_cast<std::int64_t>(kept.size())));
    return state;
  }
  void finish(const End& end) override { ended = end.ending; }

  std::deque<Remedy> starts_fail, logs_fail, flushes_fail;  // one a call, until none is left
  bool restarts = false;
  std::int64_t without_place = 0;  // of the points of each call
  int starts = 0;
  Lines given, kept;
  Ending ended = Ending::kOpen;

 private:
  static void fail_if(std::deque<Remedy>& planned) {
    if (planned.empty()) return;
    const Remedy remedy = planned.front();
    planned.pop_front();
    throw TrackerError(remedy, "the tool says no");
  }
};

/// The same tool in every call: it keeps what was flushed.
struct Fixture : tracker_tests::FollowedRun {
  FollowResult follow(bool until_end = false) {
    return trackers::follow(run, tool, {"tool", until_end}, clock, meanwhile);
  }
  Tool tool;
};

}  // namespace

TEST_CASE("what the run says is brought line by line, once", "[trackers][follow]") {
  Fixture f;
  std::ofstream log(f.run.dir + "/logs/rank-0.log");
  log << "2027-01-15T08:00:00.000Z info run begins\n2027-01-15T08:00:00.000Z error it fails\n" << std::flush;
  f.commit();  // makes run.db
  f.follow();
  CHECK(f.tool.kept == Lines{"> run begins", "! it fails"});
  log << "2027-01-15T08:00:00.000Z info it goes on\n" << std::flush;
  f.follow();
  CHECK(f.tool.kept == Lines{"> run begins", "! it fails", "> it goes on"});
}

TEST_CASE("what went wrong is on record until the next flush", "[trackers][follow]") {
  Fixture f;
  const auto record = [&f] { return runner::store::read_cursors(f.run.dir).at("tool"); };
  f.log(1, 5);
  f.commit();
  f.tool.logs_fail = {Remedy::kPause};
  f.follow();
  CHECK(record().problem == "the tool says no");
  CHECK(record().problem_ms == f.clock.wall_ms());
  CHECK(record().cursor.rows.metrics == 0);
  f.tool.logs_fail = {Remedy::kReject};
  f.follow();
  CHECK(record().problem.empty());
  CHECK(record().rejected == 1);
  CHECK(record().cursor.rows.metrics == 1);
  CHECK(runner::store::last_metric_row(f.run.dir) == 1);
}

TEST_CASE("each call brings what is new, once", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.text(1, "sample", "to be");
  f.commit();
  CHECK(f.follow().points == 1);
  CHECK(f.tool.kept == Lines{"loss@1=5", "sample: to be"});
  CHECK(f.follow().points == 0);
  f.log(2, 4);
  f.commit();
  CHECK(f.follow().points == 1);
  CHECK(f.tool.kept == Lines{"loss@1=5", "sample: to be", "loss@2=4"});
}

TEST_CASE("what was not flushed is taken back and comes again", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  f.follow();
  f.log(2, 4);
  f.commit();
  f.tool.flushes_fail = {Remedy::kPause};
  const FollowResult result = f.follow();
  CHECK(result.problem == "the tool says no");
  CHECK(f.tool.given == Lines{"loss@1=5", "loss@2=4"});
  CHECK(f.follow().problem.empty());
  CHECK(f.tool.kept == Lines{"loss@1=5", "loss@2=4"});
}

TEST_CASE("a tool that is down is tried again, later each time", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.writer->finish(RunStatus::kFinished, "");
  f.meanwhile.next = [] { return true; };
  f.tool.starts_fail.assign(8, Remedy::kRetry);
  const FollowResult result = f.follow(true);
  CHECK(result.problem.empty());
  CHECK(f.meanwhile.waited_ms == std::vector<std::int64_t>{1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000});
  CHECK(f.tool.kept == Lines{"loss@1=5"});
  CHECK(f.tool.ended == Ending::kFinished);
}

TEST_CASE("a follower told to stop while a tool is down reports the problem", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  f.meanwhile.next = [] { return false; };
  f.tool.starts_fail = {Remedy::kRetry};
  CHECK(f.follow(true).problem == "the tool says no");
  CHECK(f.tool.kept.empty());
}

TEST_CASE("without a run to wait for, a tool that is down ends the call", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  f.tool.starts_fail = {Remedy::kRetry};
  CHECK(f.follow().problem == "the tool says no");
  CHECK(f.meanwhile.waited_ms.empty());
}

TEST_CASE("a follower told to stop sends the rest and how the run ended", "[trackers][follow]") {
  Fixture f;
  f.commit();  // run.db is there: it is made on another thread
  f.meanwhile.next = [&] {
    f.log(1, 5);
    f.writer->finish(RunStatus::kFinished, "");
    return false;
  };
  CHECK(f.follow(true).points == 1);
  CHECK(f.tool.kept == Lines{"loss@1=5"});
  CHECK(f.tool.ended == Ending::kFinished);
}

TEST_CASE("points that a tool rejects are counted", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.log(2, 4);
  f.commit();
  f.tool.without_place = 1;
  const FollowResult result = f.follow();
  CHECK(result.points == 1);
  CHECK(result.rejected_points == 1);
  CHECK(runner::store::Cursors(f.run.dir).get("tool").rejected == 1);
}

TEST_CASE("one process at a time sends a run to a tracker, and a resync sends it again", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  auto lock = runner::store::TrackerLock::take(f.run.dir, "tool");
  REQUIRE(lock.ok());
  CHECK(runner::store::TrackerLock::take(f.run.dir, "other").ok());
  CHECK(runner::store::TrackerLock::take(f.run.dir, "tool").failure().message ==
        "process " + std::to_string(getpid()) + " is already syncing this run to it");
  lock.value().reset();
  CHECK(runner::store::TrackerLock::take(f.run.dir, "tool").ok());
  f.follow();
  CHECK(f.follow().points == 0);
  runner::store::Cursors(f.run.dir).forget("tool");
  CHECK(f.follow().points == 1);
  CHECK(f.tool.kept == Lines{"loss@1=5"});
}

TEST_CASE("data that a tool does not take are left out and counted", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  f.tool.logs_fail = {Remedy::kReject};
  const FollowResult result = f.follow();
  CHECK(result.rejected_points == 1);
  CHECK(result.problem.empty());
  f.log(2, 4);
  f.commit();
  f.follow();
  CHECK(f.tool.kept == Lines{"loss@2=4"});
}

TEST_CASE("a follower runs until the run has ended", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  int rounds = 0;
  f.meanwhile.next = [&] {
    if (++rounds == 1) {
      f.log(2, 4);
      f.commit();
    } else {
      f.log(3, 3);
      f.writer->finish(RunStatus::kStopped, "SIGTERM");
    }
    return rounds < 3;
  };
  CHECK(f.follow(true).points == 3);
  CHECK(rounds == 2);
  CHECK(f.tool.kept == Lines{"loss@1=5", "loss@2=4", "loss@3=3"});
  CHECK(f.tool.ended == Ending::kStopped);
  CHECK_FALSE(std::filesystem::exists(f.run.dir + "/run.db-wal"));
}

TEST_CASE("a run that lost one of its processes has crashed", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.writer->finish(RunStatus::kCrashed, "rank 1 is lost");
  f.follow(true);
  CHECK(f.tool.ended == Ending::kCrashed);
}

TEST_CASE("a run without an owner has crashed", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.commit();
  f.writer.reset();
  f.follow(true);
  CHECK(f.tool.ended == Ending::kFailed);  // its writer had the time to say so
}

TEST_CASE("a rewind is delivered, or the valid points are sent again", "[trackers][follow]") {
  Fixture f;
  for (int step = 1; step <= 3; ++step) f.log(step, 10 + step);
  f.commit();
  f.follow();
  f.writer->rewind(2);
  f.log(3, 23);
  f.commit();
  SECTION("told") {
    f.follow();
    CHECK(f.tool.kept == Lines{"loss@1=11", "loss@2=12", "loss@3=13", "back to 2", "loss@3=23"});
  }
  SECTION("again") {
    f.tool.restarts = true;
    f.follow();
    CHECK(f.tool.kept == Lines{"loss@1=11", "loss@2=12", "loss@3=23"});
  }
  SECTION("again, and ended before the next flush: it is known to have nothing") {
    f.tool.restarts = true;
    f.tool.flushes_fail = {Remedy::kRetry};
    f.follow();
    CHECK(runner::store::Cursors(f.run.dir).get("tool").state.is_null());
    f.tool.restarts = false;
    f.follow();
    CHECK(f.tool.kept == Lines{"loss@1=11", "loss@2=12", "loss@3=23"});
  }
}

TEST_CASE("what lies in files reaches the tool, and a table as its cells", "[trackers][follow]") {
  Fixture f;
  const auto put = [&f](const char* kind, const std::string& file, const std::string& content) {
    const std::string path = f.run.dir + "/" + file;
    std::ofstream(path) << content;
    Node data = Node::mapping();
    data.set("name", Node::string(std::string(kind) + " one"));
    f.writer->artefact(kind, 3, path, std::move(data));
  };
  put("image", "a.png", "");
  put("table", "a.json", R"({"columns": ["x", "y"], "data": [[1, "b"]]})");
  put("table", "b.json", R"({"columns": ["x", "y"], "data": [[1]]})");
  put("profile", "trace.json", "{}");
  f.writer->artefact("checkpoint", 3, "gone", Node::mapping());
  f.commit();
  const FollowResult result = f.follow();
  CHECK(result.problem.empty());
  CHECK(result.rejected_points == 1);
  CHECK(f.tool.kept == Lines{"image image one", "table table one: x y 1 b", "profile profile one"});
}

TEST_CASE("a run that was brought over whole is left alone", "[trackers][follow]") {
  Fixture f;
  f.log(1, 5);
  f.writer->finish(RunStatus::kFinished, "");
  f.follow();
  CHECK(f.tool.starts == 1);
  f.follow();
  CHECK(f.tool.starts == 1);
}
