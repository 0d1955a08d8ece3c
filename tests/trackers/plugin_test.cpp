#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "runner/core/log.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"
#include "tests/trackers/followed_run.h"

namespace {

const std::string kBadPlugin = tests::build_dir() + "/lib/libbad_plugin.so";

using runner::store::RunStatus;
using tracker_tests::FollowedRun;

/// A program of the shell as the plugin; `$line` is the line that it has read.
std::string program(const std::string& each_line, const std::string& more = "") {
  const auto quoted = [](const std::string& text) {
    return runner::core::to_json(runner::core::Node::string(text), -1);
  };
  return R"({"type": "plugin", "command": ["sh", "-c", )" +
         quoted("while IFS= read -r line; do " + each_line + "\ndone") + "]" + more + "}";
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What is said for ever is not for the eyes of who runs the tests.
struct Unheard {
  Unheard() { runner::core::configure_log({.level = runner::core::LogLevel::kError}); }
  ~Unheard() { runner::core::configure_log(before); }
  const runner::core::LogOptions before = runner::core::log_options();
};

struct Fixture : FollowedRun {
  Fixture() {
    log(1, 0.5);
    commit();
  }
  tests::Folder here;
};

}  // namespace

TEST_CASE("a program reads what a run tells", "[trackers][plugin]") {
  Fixture f;
  f.text(1, "sample", "to be");
  f.commit();
  f.writer->finish(RunStatus::kFinished, "");
  const auto result = f.follow(program("printf '%s\\n' \"$line\" >> got.jsonl", R"(, "options": {"a": [1]})"));
  CHECK(result.problem.empty());
  CHECK(result.points == 1);
  CHECK(content("got.jsonl") ==
        R"({"type":"options","resumed":false,"options":{"a": [1]}})"
        "\n"
        R"({"type":"start","run":")" +
            f.run.id + R"(","name":"tiny","config":)" + runner::core::to_json(f.run.config, -1) +
            "}\n"
            R"({"type":"metric","name":"loss","step":1,"time":1800000000.000,"value":0.5})"
            "\n"
            R"({"type":"text","name":"sample","step":1,"time":1800000000.000,"text":"to be"})"
            "\n"
            R"({"type":"flush","number":1})"
            "\n"
            R"({"type":"end","ending":"finished","reason":"","time":1800000000.000,"summary":null})"
            "\n");
}

TEST_CASE("a program that answers flushes gets what it has not answered once more", "[trackers][plugin]") {
  Fixture f;
  const std::string answers = R"(, "acknowledges": true)";
  // Dies before it answers.
  const auto died = f.follow(program("case $line in *flush*) exit 3;; esac", answers));
  CHECK(died.problem == "sh exited with status 3");
  CHECK(died.points == 0);
  const auto done = f.follow(
      program("case $line in *metric*) echo got >> got.txt;; *flush*) echo \"flushed ${line##*:}\" | tr -d '}';; esac",
              answers));
  CHECK(done.problem.empty());
  CHECK(done.points == 1);
  CHECK(content("got.txt") == "got\n");
}

TEST_CASE("a program that exits early or cannot be started is reported, one that prints is not", "[trackers][plugin]") {
  Fixture f;
  CHECK(f.follow(R"({"type": "plugin", "command": ["sh", "-c", "exit 0"], "acknowledges": true})").problem ==
        "sh exited with status 0");
  CHECK(f.follow(R"({"type": "plugin", "command": ["./no-such-program"]})").problem ==
        "./no-such-program exited with status 127");
  CHECK(f.follow(program("exit 5")).problem == "sh exited with status 5");
  CHECK(f.follow(program("kill -SEGV $$")).problem == "sh exited with status 139");
  CHECK(f.follow(program("echo heard")).problem.empty());
}

TEST_CASE("a program that prints more than anybody reads is not held up", "[trackers][plugin]") {
  Fixture f;
  for (int step = 2; step < 3000; ++step) f.log(step, step);
  f.commit();
  const auto result = f.follow(program("printf 'flushed %0200d\\n' 1; case $line in *flush*) echo 'flushed 1';; esac",
                                       R"(, "acknowledges": true)"));
  CHECK(result.problem.empty());
  CHECK(result.points == 2999);
}

TEST_CASE("a program that hangs is killed", "[trackers][plugin]") {
  Fixture f;
  const std::string limit = R"(, "acknowledges": true, "answer_timeout": "0.2s")";
  CHECK(f.follow(program("exec sleep 1000", limit)).problem == "sh does not answer a flush within answer_timeout");
  CHECK(f.follow(R"({"type": "plugin", "command": ["sleep", "1000"], "answer_timeout": "0.2s"})").problem ==
        "sleep does not exit within answer_timeout");
}

TEST_CASE("a program that does harm ends within its time", "[trackers][plugin]") {
  const Unheard unheard;
  Fixture f;
  f.writer->finish(RunStatus::kFinished, "");
  const auto problem = [&f](const std::string& script, const std::string& more) {
    return f
        .follow(R"({"type": "plugin", "command": ["sh", "-c", ")" + script + R"("], "answer_timeout": "0.3s")" + more +
                "}")
        .problem;
  };
  const std::string acknowledges = R"(, "acknowledges": true)";
  CHECK(problem("printf flushed; exec cat > /dev/null", acknowledges) ==
        "sh does not answer a flush within answer_timeout");
  CHECK(problem("exec yes", acknowledges) == "sh does not answer a flush within answer_timeout");
  CHECK(problem("exec yes >&2", "") == "sh does not exit within answer_timeout");
  CHECK(problem("exec > /dev/null 2>&1; exec sleep 1000", "") == "sh does not exit within answer_timeout");
  // Before the line is written, or after it.
  CHECK_THAT(problem("exec <&-; exec sleep 1000", acknowledges), Catch::EndsWith("within answer_timeout"));
  CHECK(problem("trap '' TERM; echo $$ > pid; cat > /dev/null; while :; do sleep 1000; done", "") ==
        "sh does not exit within answer_timeout");
  CHECK(kill(std::stoi(content("pid")), 0) == -1);
}

TEST_CASE("a shared object that throws or returns nonsense is reported", "[trackers][plugin]") {
  Fixture f;
  f.writer->finish(RunStatus::kFinished, "");
  const auto problem = [&f](const std::string& at, const std::string& does) {
    return f
        .follow(R"({"type": "plugin", "path": ")" + kBadPlugin + R"(", "options": {"at": ")" + at + R"(", "does": ")" +
                    does + R"("}})",
                false, at + does)
        .problem;
  };
  for (const char* at : {"open", "log", "finish"}) {
    INFO(at);
    CHECK(problem(at, "throws words") == "the plugin's own words");
    CHECK(problem(at, "throws a number") == "the tracker threw an unknown exception");
  }
  CHECK(problem("log", "answers") == kBadPlugin + ": it refused the data");
}

TEST_CASE("a file that is no plugin is refused", "[trackers][plugin]") {
  Fixture f;
  f.here.write("text.so", "not a library");
  CHECK(f.follow(R"({"type": "plugin", "path": "text.so"})").problem ==
        "cannot load the plugin: ./text.so: file too short");
  CHECK(f.follow(R"({"type": "plugin", "path": "./missing.so"})").problem ==
        "cannot load the plugin: ./missing.so: cannot open shared object file: No such file or directory");
}
