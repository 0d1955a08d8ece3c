#include "runner/launch/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "runner/core/platform/machine.h"
#include "runner/core/platform/run_async.h"
#include "runner/launch/agent_connection.h"
#include "runner/launch/messages.h"
#include "runner/launch/node_agents.h"
#include "tests/support/process/rank_processes.h"
#include "tests/support/temp_dir.h"

namespace {

using runner::launch::LaunchEnd;
using runner::launch::LaunchPlan;

/// Ranks are scripts of Python: `rank` is which one, wait() blocks for ever.
struct Launch {
  std::vector<std::string> said;
  LaunchPlan plan;

  explicit Launch(const std::string& script, int ranks = 2) {
    plan.num_processes = ranks;
    plan.command = [script](const runner::launch::RankAssignment&) { return python(script); };
    plan.store_command = [](int, int) { return python("wait()"); };
    plan.say = [this](const std::string& line) { said.push_back(line); };
    plan.grace_ms = 1;
  }
  static std::vector<std::string> python(const std::string& script) {
    const std::string begin =
        "import os, signal, sys\n"
        "def wait():\n  while True: signal.pause()\n"
        "rank = int(os.environ.get('RANK', -1))\n";
    return {"/usr/bin/python3", "-c", begin + script};
  }
  LaunchEnd end() { return runner::launch::supervise(plan); }
};

std::string without_pid(const std::string& text) {
  return std::regex_replace(text, std::regex("process(es)? [0-9]+(, [0-9]+)*"), "process N");
}

}  // namespace

TEST_CASE("ranks that all finish need no message", "[launch][supervisor]") {
  Launch launch("assert os.environ['WORLD_SIZE'] == '3' and os.environ['LOCAL_RANK'] == str(rank)", 3);
  const LaunchEnd end = launch.end();
  CHECK(end.status == 0);
  CHECK(end.message.empty());
  REQUIRE(launch.said.size() == 1);
  CHECK(without_pid(launch.said[0]) == "started 3 ranks as process N");
}

TEST_CASE("the rank that fails first is reported with its own message, and the others are ended",
          "[launch][supervisor]") {
  Launch launch(
      "if rank != 1: wait()\n"
      "print('step 3', flush=True)\n"
      "sys.stderr.write('error: data.bin:12 is no number\\n  hint: look at it\\n')\n"
      "sys.exit(3)\n",
      3);
  const LaunchEnd end = launch.end();
  CHECK(end.status == 1);
  CHECK(without_pid(end.message) ==
        "rank 1 (process N) failed with exit status 3: data.bin:12 is no number\n  hint: look at it");
}

TEST_CASE("a rank ended by a signal is reported with that signal", "[launch][supervisor]") {
  Launch launch("wait() if rank == 0 else os.kill(os.getpid(), signal.SIGSEGV)");
  const LaunchEnd end = launch.end();
  CHECK(end.status == 1);
  CHECK(without_pid(end.message) == "rank 1 (process N) was killed by SIGSEGV");
}

TEST_CASE("a rank that only lost a peer is not blamed", "[launch][supervisor]") {
  // Rank 0 says that rank 1 is lost, by exit status 76, before that is known to have failed itself.
  const tests::TempDir dir;
  const std::string fifo = dir.path() + "/told";
  Launch launch("fifo = '" + fifo +
                "'\n"
                "if rank == 0:\n"
                "  open(fifo, 'w').close()\n"
                "  sys.exit(76)\n"
                "open(fifo).close()\n"
                "sys.exit(4)\n");
  launch.plan.grace_ms = 60'000;
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const LaunchEnd end = launch.end();
  CHECK(end.status == 1);
  CHECK(without_pid(end.message) == "rank 1 (process N) failed with exit status 4");
}

TEST_CASE("if one rank hangs, the ranks that waited for it report it", "[launch][supervisor]") {
  Launch launch(
      "if rank == 0: wait()\n"
      "sys.stderr.write('error: rank 1: rank 0 does not answer\\n')\n"
      "sys.exit(76)\n");
  const LaunchEnd end = launch.end();
  CHECK(end.status == 1);
  CHECK(end.message == "rank 1: rank 0 does not answer");
}

TEST_CASE("a rank that stops and can be resumed is why the others lost it", "[launch][supervisor]") {
  Launch launch("sys.exit(75 if rank == 0 else 76)", 3);
  launch.plan.grace_ms = 60'000;
  launch.plan.max_restarts = 3;
  const LaunchEnd end = launch.end();
  CHECK(end.status == 75);
  CHECK(end.message.empty());
}

TEST_CASE("an error of all ranks is reported by the first one", "[launch][supervisor]") {
  Launch launch("sys.exit(2)");
  launch.plan.grace_ms = 60'000;
  const LaunchEnd end = launch.end();
  CHECK(end.status == 2);
  CHECK(end.message.empty());
}

TEST_CASE("a signal is handed on to each rank, and a stop that can be resumed is passed on", "[launch][supervisor]") {
  const tests::TempDir dir;
  const std::string fifo = dir.path() + "/ready";
  Launch launch("fifo = '" + fifo +
                "'\n"
                "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
                "if rank == 1: open(fifo, 'w').close()\n"
                "else:\n"
                "  open(fifo).close()\n"  // the other one is ready, too
                "  os.kill(os.getppid(), signal.SIGTERM)\n"
                "wait()\n");
  launch.plan.max_restarts = 5;
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const LaunchEnd end = launch.end();
  CHECK(end.status == 75);
  CHECK(end.message.empty());
  CHECK(launch.said.size() == 1);
}

TEST_CASE("a signal before the ranks train ends them as resumable", "[launch][supervisor]") {
  // Neither rank looks after signals yet; rank 0 asks its supervisor for the end.
  const int asked = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGUSR1);
  CAPTURE(asked);
  const tests::TempDir dir;
  const std::string fifo = dir.path() + "/ready";
  Launch launch("fifo = '" + fifo +
                "'\n"
                "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                "if rank == 1: open(fifo, 'w').close()\n"
                "else:\n"
                "  open(fifo).close()\n"  // the other one is there, too
                "  os.kill(os.getppid(), " +
                std::to_string(asked) +
                ")\n"
                "wait()\n");
  launch.plan.grace_ms = 60'000;  // the signal ends both, however busy the machine is
  launch.plan.max_restarts = 5;
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const LaunchEnd end = launch.end();
  CHECK(end.status == 75);
  CHECK(end.message.empty());
}

TEST_CASE("a process that ignores two requests to end is killed", "[launch][supervisor]") {
  Launch launch(
      "def again(*_):\n"
      "  signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
      "  os.kill(os.getppid(), signal.SIGINT)\n"
      "signal.signal(signal.SIGINT, again)\n"
      "os.kill(os.getppid(), signal.SIGINT)\n"
      "wait()\n",
      1);
  launch.plan.max_restarts = 5;
  const LaunchEnd end = launch.end();
  CHECK(end.status == 128 + SIGINT);
  CHECK(end.message.empty());
}

TEST_CASE("a store that is lost ends ranks that still need it, and no others", "[launch][supervisor]") {
  const tests::TempDir dir;
  const std::string fifo = dir.path() + "/ended";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  SECTION("before they have met") {
    Launch launch("wait()");
    launch.plan.store_command = [](int, int) { return Launch::python("sys.exit(9)"); };
    const LaunchEnd end = launch.end();
    CHECK(end.status == 1);
    CHECK(without_pid(end.message) == "the rendezvous store (process N) failed with exit status 9");
  }
  SECTION("when they are about to end") {
    Launch launch("open('" + fifo + "').read()", 1);
    launch.plan.store_command = [fifo](int, int) { return Launch::python("open('" + fifo + "', 'w'); sys.exit(9)"); };
    launch.plan.grace_ms = 60'000;
    CHECK(launch.end().status == 0);
  }
}

TEST_CASE("a rank that does not end although the others are done is killed and named", "[launch][supervisor]") {
  struct Case {
    const char* name;
    int rank;
    const char* stops;  // `True` or `False`: hangs
    int status;         // of the other one
    const char* message;
  };
  const Case cases[] = {
      {"stopped", 1, "True", 0,
       "rank 1 (process N) did not end within 1 ms (launch.timeout) of the others: it is stopped, as by SIGSTOP"},
      {"rank 0 stopped", 0, "True", 0,
       "rank 0 (process N) did not end within 1 ms (launch.timeout) of the others: it is stopped, as by SIGSTOP"},
      {"hanging", 1, "False", 0, "rank 1 (process N) did not end within 1 ms (launch.timeout) of the others"},
      {"stopped after a signal", 1, "True", 75,
       "rank 1 (process N) did not end within 1 ms (launch.timeout) of the others: it is stopped, as by SIGSTOP"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir dir;
      const std::string fifo = dir.path() + "/process";
      REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
      Launch launch("stops = " + std::string(c.stops) + "\nif rank == " + std::to_string(c.rank) + ":\n  with open('" +
                    fifo +
                    "', 'w') as file: file.write(str(os.getpid()))\n"
                    "  if stops: os.kill(os.getpid(), signal.SIGSTOP)\n"
                    "  wait()\n"
                    "other = open('" +
                    fifo +
                    "').read()\n"
                    "while stops and ') T' not in open(f'/proc/{other}/stat').read(): pass\n"
                    "sys.exit(" +
                    std::to_string(c.status) + ")\n");
      launch.plan.end_timeout_s = 1e-3;
      launch.plan.max_restarts = 3;
      const LaunchEnd end = launch.end();
      CHECK(end.status == 1);
      CHECK(without_pid(end.message) == c.message);
      CHECK(launch.said.size() == 1);  // no restart
    }
  }
}

TEST_CASE("rank 0 may write its results for longer than the others last", "[launch][supervisor]") {
  const tests::TempDir dir;
  const std::string fifo = dir.path() + "/ended";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  // Rank 0 ends when nothing holds the other end of the FIFO any more, and some of its own time later.
  Launch launch("fifo = '" + fifo +
                "'\n"
                "if rank == 1: open(fifo, 'w')\n"
                "else:\n"
                "  open(fifo).read()\n"
                "  for i in range(300000): pass\n");
  launch.plan.end_timeout_s = 1e-6;
  const LaunchEnd end = launch.end();
  CHECK(end.status == 0);
  CHECK(end.message.empty());
}

TEST_CASE("a machine that fails, hangs or has another build is reported", "[launch][supervisor][machines]") {
  using runner::launch::AgentConnection;
  Launch launch("sys.exit(76)");
  launch.plan.machines.count = 2;
  launch.plan.machines.rank = 0;
  launch.plan.machines.address = "127.0.0.1";
  launch.plan.machines.port = tests::unused_port();
  launch.plan.answer_ms = 1;
  runner::launch::Hello hello = runner::launch::own_hello(launch.plan);
  hello.host = "elsewhere";
  hello.rank = 1;
  // Machine 1: says who it is, answers each start with `answer`, and listens until the end.
  const auto machine_1 = [&](const std::optional<runner::launch::RankEnd>& answer) {
    return runner::core::run_async([hello, answer, port = launch.plan.machines.port] {
      auto connected = runner::launch::try_connect("127.0.0.1", port, 1'000);
      while (!connected) connected = runner::launch::try_connect("127.0.0.1", port, 1'000);
      AgentConnection link(connected.value(), {});
      link.send(runner::launch::message(hello));
      std::string end;
      while (link.is_open()) {
        pollfd waiting = {link.descriptor(), POLLIN, 0};
        poll(&waiting, 1, -1);
        for (const auto& message : link.receive()) {
          if (answer && runner::launch::start_of(message)) link.send(runner::launch::message(*answer));
          if (const auto told = runner::launch::end_of(message)) end = told->message;
        }
      }
      return end;
    });
  };
  SECTION("fails") {
    runner::launch::RankEnd failed;
    failed.status = 1;
    failed.text = "cannot write logs/rank-1.log";
    auto other = machine_1(failed);
    CHECK(launch.end().message == "machine 1 (elsewhere) failed: cannot write logs/rank-1.log");
    CHECK(other.get() == "machine 1 (elsewhere) failed: cannot write logs/rank-1.log");
  }
  SECTION("hangs") {
    auto other = machine_1(std::nullopt);
    CHECK(launch.end().message == "lost machine 1 (elsewhere) at 127.0.0.1: it does not report how its ranks ended");
    CHECK(other.get().empty());
  }
  SECTION("is of another build") {
    const std::string own = hello.program;
    hello.program = "0.0.1 of source 0000000000000000";
    auto other = machine_1(std::nullopt);
    const LaunchEnd end = launch.end();
    CHECK(end.status == 2);
    CHECK(end.message == "machines 0 (" + runner::core::host_name() + ") and 1 (elsewhere) run different programs: " +
                             own + " and 0.0.1 of source 0000000000000000");
    CHECK(other.get() == end.message);
  }
}

TEST_CASE("a group that failed resumes its run, as often as it may", "[launch][supervisor]") {
  Launch launch(
      "if rank == 0:\n"
      "  os.write(int(os.environ['ROUX_REPORT_DESCRIPTOR']), b'runs/a-1\\n')\n"
      "  sys.exit(76)\n"
      "sys.exit(5)\n");
  std::vector<std::string> runs;
  const auto begin = launch.plan.command;
  launch.plan.command = [&runs, begin](const runner::launch::RankAssignment& assignment) {
    if (assignment.restart_count == 0) return begin(assignment);
    runs.resize(static_cast<std::size_t>(assignment.restart_count), assignment.run_dir);
    return assignment.restart_count == 1 ? Launch::python("sys.exit(6 if rank == 1 else 76)") : Launch::python("pass");
  };
  launch.plan.grace_ms = 60'000;

  SECTION("to its end") {
    launch.plan.max_restarts = 2;
    const LaunchEnd end = launch.end();
    CHECK(end.status == 0);
    CHECK(runs == std::vector<std::string>{"runs/a-1", "runs/a-1"});
    REQUIRE(launch.said.size() == 5);
    CHECK(without_pid(launch.said[1]) ==
          "rank 1 (process N) failed with exit status 5; restarting all ranks, restart 1 of 2");
  }
  SECTION("and no more often") {
    launch.plan.max_restarts = 1;
    const LaunchEnd end = launch.end();
    CHECK(end.status == 1);
    CHECK(without_pid(end.message) == "rank 1 (process N) failed with exit status 6");
    CHECK(end.hint == "all restarts are used up (launch.max_restarts: 1)");
  }
}
