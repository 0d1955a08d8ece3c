#include "runner/store/feed/feed.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "runner/store/database/schema.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::store;
using store_test::create;
using store_test::FixedClock;
using store_test::log;
using store_test::new_run;
using store_test::OutputDir;

constexpr std::int64_t kMany = 1000;

std::string text_of(Feed& feed, const FeedBatch& batch) {
  std::string text = batch.rewind_to ? "back to " + std::to_string(*batch.rewind_to) + ":" : "";
  for (const FeedPoint& point : batch.points) {
    text += (text.empty() ? "" : " ") + feed.series(point.series).key() + "@" + std::to_string(point.step) + "=" +
            std::to_string(static_cast<int>(point.value));
  }
  for (const FeedEvent& event : batch.events) text += (text.empty() ? "" : " ") + event.kind;
  for (const FeedArtefact& artefact : batch.artefacts) text += (text.empty() ? "" : " ") + artefact.path;
  return text;
}

/// Every piece until there is nothing more.
std::vector<std::string> read_on(Feed& feed, Cursor& cursor, std::int64_t points_max = kMany) {
  std::vector<std::string> pieces;
  for (FeedBatch batch = feed.next(cursor, points_max); !batch.empty(); batch = feed.next(cursor, points_max)) {
    pieces.push_back(text_of(feed, batch));
    cursor = batch.end;
  }
  return pieces;
}

using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE("a feed gives what was written, in order and once", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  log(*writer, "loss", 1, 5);
  log(*writer, "loss", 2, 4);
  log(*writer, "loss", 2, 6, "val");
  writer->event("text", 2, runner::core::Node::mapping());
  writer->flush_durable();

  Feed feed(writer->run_dir());
  Cursor cursor;
  CHECK(read_on(feed, cursor) == Pieces{"loss@1=5 loss@2=4 val/loss@2=6 text"});
  CHECK(read_on(feed, cursor).empty());
  log(*writer, "accuracy", 3, 1);
  writer->flush_durable();
  CHECK(read_on(feed, cursor) == Pieces{"accuracy@3=1"});
  CHECK(feed.end().status == "running");

  Cursor again;
  CHECK(read_on(feed, again, 2) == Pieces{"loss@1=5 loss@2=4 text", "val/loss@2=6 accuracy@3=1"});
}

TEST_CASE("a database that a run is still creating is worth another try", "[store][feed]") {
  const OutputDir output;
  { const Database empty(run_db_path(output.path), Database::Mode::kCreate); }
  try {
    const Feed feed(output.path);
    FAIL("an empty file has no feed");
  } catch (const SqliteError& error) {
    CHECK(error.is_transient());
  }
}

TEST_CASE("NaN and infinity are delivered as logged", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  log(*writer, "loss", 1, std::numeric_limits<double>::quiet_NaN());
  log(*writer, "loss", 2, -std::numeric_limits<double>::infinity());
  writer->flush_durable();
  Feed feed(writer->run_dir());
  const FeedBatch batch = feed.next({}, kMany);
  REQUIRE(batch.points.size() == 2);
  CHECK(std::isnan(batch.points[0].value));
  CHECK(batch.points[1].value == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a rewind records its step, and a reader may start again", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  for (int step = 0; step <= 3; ++step) log(*writer, "loss", step, 10 + step);
  writer->rewind(2);
  log(*writer, "loss", 3, 23);
  writer->flush_durable();

  Feed feed(writer->run_dir());
  Cursor cursor;
  CHECK(read_on(feed, cursor) == Pieces{"loss@0=10 loss@1=11 loss@2=12 loss@3=13", "back to 2: loss@3=23"});
  log(*writer, "loss", 4, 24);
  writer->flush_durable();
  cursor.branch = -1;
  CHECK(read_on(feed, cursor) == Pieces{"back to -1: loss@0=10 loss@1=11 loss@2=12 loss@3=23", "loss@4=24"});
}

TEST_CASE("what comes once more comes in pieces, and may be left in the middle", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  for (int step = 0; step <= 5; ++step) log(*writer, "loss", step, 10 + step);
  writer->rewind(3);
  for (int step = 4; step <= 6; ++step) log(*writer, "loss", step, 20 + step);
  writer->flush_durable();

  Feed feed(writer->run_dir());
  Cursor cursor;
  read_on(feed, cursor);
  log(*writer, "loss", 7, 27);
  writer->flush_durable();
  cursor.branch = -1;
  const Pieces pieces = {"back to -1: loss@0=10 loss@1=11 loss@2=12", "loss@3=13 loss@4=24 loss@5=25", "loss@6=26",
                         "loss@7=27"};
  Cursor first = cursor;
  CHECK(read_on(feed, first, 3) == pieces);
  CHECK_FALSE(first.replay);
  const FeedBatch begun = feed.next(cursor, 3);
  writer->rewind(6);  // while half of it is told
  log(*writer, "loss", 7, 37);
  writer->flush_durable();
  Cursor second = begun.end;
  CHECK(read_on(feed, second, 3) ==
        Pieces{"loss@3=13 loss@4=24 loss@5=25", "loss@6=26", "loss@7=27", "back to 6: loss@7=37"});
}

TEST_CASE("a branch that grew from an older one brings what lies between", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  std::string run_dir;
  {
    const auto writer = create(new_run(output), clock);
    run_dir = writer->run_dir();
    for (int step = 1; step <= 4; ++step) log(*writer, "loss", step, 10 + step);
    writer->rewind(1);
    log(*writer, "loss", 2, 22);
    writer->finish(RunStatus::kStopped, "");
  }
  {  // from a checkpoint of the first branch, beyond where the second one left it
    const auto writer = std::move(RunWriter::resume({run_dir, 3, 0}, clock)).value();
    log(*writer, "loss", 4, 34);
    writer->finish(RunStatus::kFinished, "");
  }
  Feed feed(run_dir);
  Cursor cursor;
  const Pieces pieces = read_on(feed, cursor);
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[0] == "loss@1=11 loss@2=12 loss@3=13 loss@4=14");
  CHECK(pieces[1] == "back to 1: loss@2=22");
  CHECK(pieces[2] == "back to 1: loss@2=12 loss@3=13");
  CHECK(pieces[3] == "loss@4=34 resume");
}

TEST_CASE("what lies in files comes with the rest, and once more to a reader that starts again", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  const auto save = [&](std::int64_t step) {
    const std::string name = "step-" + std::to_string(step);
    writer->artefact("checkpoint", step, writer->run_dir() + "/checkpoints/" + name, runner::core::Node::mapping());
    writer->event(name, step, runner::core::Node::mapping());
  };
  save(1);
  save(2);
  save(3);
  writer->rewind(2);
  save(4);
  writer->artefact("table", 4, "/elsewhere/table.json", runner::core::Node::mapping());
  writer->flush_durable();

  Feed feed(writer->run_dir());
  Cursor cursor;
  CHECK(read_on(feed, cursor) == Pieces{"step-1 step-2 step-3 checkpoints/step-1 checkpoints/step-2 checkpoints/step-3",
                                        "back to 2: step-4 checkpoints/step-4 /elsewhere/table.json"});
  save(5);
  writer->flush_durable();
  cursor.branch = -1;
  CHECK(read_on(feed, cursor) ==
        Pieces{"back to -1: step-1 step-2 step-4 checkpoints/step-1 checkpoints/step-2 checkpoints/step-4 "
               "/elsewhere/table.json",
               "step-5 checkpoints/step-5"});
}

TEST_CASE("a branch that leaves nothing behind takes nothing back", "[store][feed]") {
  const OutputDir output;
  const FixedClock clock;
  const auto writer = create(new_run(output), clock);
  for (int step = 1; step <= 2; ++step) log(*writer, "loss", step, 10 + step);
  writer->flush_durable();
  Feed feed(writer->run_dir());
  Cursor cursor;
  read_on(feed, cursor);
  writer->rewind(2);
  log(*writer, "loss", 3, 23);
  writer->flush_durable();
  CHECK(read_on(feed, cursor) == Pieces{"loss@3=23"});
}

TEST_CASE("where there are many of one kind, the others wait with what came later", "[store][feed]") {
  const OutputDir output;
  FixedClock clock;
  const auto writer = create(new_run(output), clock);
  for (int step = 1; step <= 5; ++step) {
    clock.now_ms += 1000;
    log(*writer, "loss", step, step);
    writer->event("e" + std::to_string(step), step, runner::core::Node::mapping());
    if (step == 4) {
      for (const char* kind : {"a", "b", "c"}) writer->event(kind, step, runner::core::Node::mapping());
    }
  }
  writer->flush_durable();
  Feed feed(writer->run_dir());
  const Pieces pieces = {"loss@1=1 loss@2=2 e1 e2", "loss@3=3 loss@4=4 e3 e4", "a b", "loss@5=5 c e5"};
  Cursor cursor;
  CHECK(read_on(feed, cursor, 2) == pieces);
  writer->rewind(4);
  clock.now_ms += 1000;
  writer->event("e6", 6, runner::core::Node::mapping());
  writer->flush_durable();
  cursor.branch = -1;
  CHECK(read_on(feed, cursor, 2) ==
        Pieces{"back to -1: loss@1=1 loss@2=2 e1 e2", "loss@3=3 loss@4=4 e3 e4", "a b", "c", "e6"});
}
