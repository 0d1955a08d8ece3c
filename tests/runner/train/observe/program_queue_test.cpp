#include "runner/train/observe/program_queue.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/store/run_writer.h"
#include "runner/train/observe/command_log.h"
#include "tests/support/temp_dir.h"

namespace runner::train {
namespace {

using components::callback::Program;
using core::Node;

/// A run that keeps what became of its programs.
class Events final : public store::RunWriter {
 public:
  explicit Events(const tests::TempDir& folder) : folder_(folder / "run") {}

  const std::string& run_dir() const override { return folder_; }
  const std::string& run_id() const override { return id_; }
  std::int64_t branch() const override { return 0; }
  void rewind(std::int64_t) override {}
  store::MetricId metric(const std::string&, const std::string&) override { return 0; }
  void log(std::int64_t, std::span<const store::MetricValue>) override {}
  void event(const std::string& kind, std::int64_t step, Node data) override {
    REQUIRE(kind == "command");
    seen += std::to_string(step) + " " + data.find("outcome")->as_string();
    if (const Node* status = data.find("status"); status != nullptr && status->as_integer() != 0) {
      seen += " " + std::to_string(status->as_integer());
    }
    if (const Node* message = data.find("message")) seen += " (" + message->as_string() + ")";
    seen += "|";
  }
  void artefact(const std::string&, std::int64_t, const std::string&, Node) override {}
  std::int64_t last_row() const override { return 0; }
  std::int64_t flush_durable(std::int64_t) override { return 0; }
  void set_summary(Node) override {}
  void set_disk_timeout(store::DiskTimeout) override {}
  bool finish(store::RunStatus, const std::string&) override { return true; }
  void throw_if_failed() const override {}
  std::int64_t points_waited() const override { return 0; }

  std::string seen;  ///< by one thread at a time, as a run is

 private:
  std::string folder_, id_ = "some-id";
};

Program shell(const std::string& script, std::int64_t step, double timeout_s = 60) {
  return {.command = {"sh", "-c", script}, .variables = {}, .event = "save", .step = step, .timeout_s = timeout_s};
}

/// One without secrets.
const Node& recipe() {
  static const Node empty = Node::mapping();
  return empty;
}

void wait_for(const std::string& path) {
  while (!std::filesystem::exists(path)) std::this_thread::yield();
}

/// A script that ends with the process whose number is in the file; one that nothing has waited for yet has ended, too.
std::string until_ended(const std::string& file) {
  return "while grep -qs ') [^ZX] ' /proc/$(cat " + file + ")/stat; do :; done";
}

std::string text_of(const std::string& path) { return core::read_file(path, 1 << 30).value(); }

}  // namespace

TEST_CASE("programs run one at a time in the order asked for, and their output is kept", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  {
    ProgramQueue queue(run, recipe());
    for (std::int64_t step = 1; step <= 5; ++step) {
      // Two at a time would find the other's folder.
      Program program = shell("mkdir " + folder / "busy && echo $ROUX_RUN_ID $WORD && rmdir " + folder / "busy", step);
      program.variables = {{"WORD", "word" + std::to_string(step)}};
      queue.start(std::move(program));
    }
    queue.finish(ProgramQueue::Patience::kTimeouts);
  }
  CHECK(run.seen == "1 done|2 done|3 done|4 done|5 done|");
  std::string expected;
  for (int step = 1; step <= 5; ++step) {
    expected += "== save at step " + std::to_string(step) + ": sh -c mkdir " + folder / "busy" +
                " && echo $ROUX_RUN_ID $WORD && rmdir " + folder / "busy" + "\nsome-id word" + std::to_string(step) +
                "\n";
  }
  CHECK(text_of(run.run_dir() + "/logs/commands.log") == expected);
}

TEST_CASE("what becomes of a program is an event of the run", "[train][programs]") {
  const tests::TempDir folder;
  core::write_file_atomic(folder / "no_program", "").value();
  Events run(folder);
  ProgramQueue queue(run, recipe());
  queue.start(shell("exit 3", 1));
  queue.start(shell("kill -TERM $$", 2));
  queue.start({.command = {"roux-has-no-such-program"}, .event = "save", .step = 3, .timeout_s = 60});
  queue.start({.command = {folder / "no_program"}, .event = "save", .step = 4, .timeout_s = 60});
  queue.start(shell("true", 5));
  queue.finish(ProgramQueue::Patience::kTimeouts);
  CHECK(run.seen ==
        "1 failed 3|2 failed 143|3 not_started (it is not found in PATH)|4 not_started (permission denied)|5 done|");
}

TEST_CASE("a program is ended after its timeout with what it has started", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  ProgramQueue queue(run, recipe());
  // The one behind it would hold the file for long, and neither heeds SIGTERM.
  queue.start(shell("trap '' TERM; (trap '' TERM; echo $BASHPID; exec sleep 1000) & echo $$; echo $! >" +
                        folder / "child" + "; wait; wait; sleep 1000",
                    1, 0.2));
  queue.start(shell(until_ended(folder / "child"), 2));
  queue.finish(ProgramQueue::Patience::kTimeouts);
  CHECK(run.seen == "1 timed_out|2 done|");
}

TEST_CASE("what a program leaves running ends with it", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  ProgramQueue queue(run, recipe());
  queue.start(shell("sleep 1000 & echo $! >" + folder / "child", 1));
  queue.start(shell(until_ended(folder / "child"), 2));
  queue.finish(ProgramQueue::Patience::kTimeouts);
  CHECK(run.seen == "1 done|2 done|");
}

TEST_CASE("programs beyond those that may wait are dropped, but for one of the end", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  ProgramQueue queue(run, recipe());
  // It ends when the others have been asked for.
  queue.start(shell("touch " + folder / "begun" + "; until [ -e " + folder / "go" + " ]; do :; done", 1));
  wait_for(folder / "begun");
  for (std::int64_t step = 2; step <= 20; ++step) queue.start(shell("true", step));
  Program last = shell("true", 21);
  last.is_last = true;
  queue.start(last);
  const std::string dropped = "18 dropped|19 dropped|20 dropped|";
  CHECK(run.seen == dropped);
  core::write_file_atomic(folder / "go", "").value();
  queue.finish(ProgramQueue::Patience::kTimeouts);
  std::string expected = dropped;
  for (int step = 1; step <= 17; ++step) expected += std::to_string(step) + " done|";
  CHECK(run.seen == expected + "21 done|");
}

TEST_CASE("at the end a program that does not end keeps none of the end from running", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  ProgramQueue queue(run, recipe());
  Program last = shell("true", 4);
  last.is_last = true;
  SECTION("the longest timeout is waited for") {
    queue.start(shell("sleep 1000", 1, 0.3));
    queue.start(shell("sleep 1000", 2, 0.3));
    queue.start(shell("sleep 1000", 3, 0.3));
    queue.start(last);
    queue.finish(ProgramQueue::Patience::kTimeouts);
    // The second one may have begun before the time was over.
    CHECK(run.seen.find("3 dropped|") != std::string::npos);
    CHECK(run.seen.ends_with(" timed_out|4 done|"));
  }
  SECTION("a signal ends the wait") {
    queue.start(shell("touch " + folder / "begun" + "; sleep 1000", 1));
    wait_for(folder / "begun");
    queue.start(shell("true", 2));
    queue.start(last);
    queue.finish(ProgramQueue::Patience::kTimeouts, [] { return true; });
    CHECK(run.seen.find("2 dropped|") != std::string::npos);
    CHECK(run.seen.find("1 ended|") != std::string::npos);
  }
}

TEST_CASE("endless output neither fills the disk nor keeps a program running", "[train][programs]") {
  const tests::TempDir folder;
  Events run(folder);
  ProgramQueue queue(run, recipe());
  queue.start({.command = {"yes"}, .event = "save", .step = 1, .timeout_s = 0.3});
  queue.finish(ProgramQueue::Patience::kTimeouts);
  CHECK(run.seen == "1 timed_out|");
  const std::string log = text_of(run.run_dir() + "/logs/commands.log");
  CHECK(log.size() < CommandLog::kProgramBytesMax + 200);
  CHECK(log.ends_with("y\n(it printed more)\n"));
}

TEST_CASE("ROUX_COMMANDS=off starts no program", "[train][programs]") {
  const std::string word = GENERATE("off", "False", "maybe");  // another word is refused before a run begins
  const tests::TempDir folder;
  Events run(folder);
  ::setenv("ROUX_COMMANDS", word.c_str(), 1);
  ProgramQueue queue(run, recipe());
  ::unsetenv("ROUX_COMMANDS");
  queue.start(shell("true", 1));
  queue.finish(ProgramQueue::Patience::kTimeouts);
  CHECK(run.seen.empty());
  CHECK_FALSE(std::filesystem::exists(run.run_dir()));
}

}  // namespace runner::train
