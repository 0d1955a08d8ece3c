#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "runner/core/log.h"
#include "runner/store/feed/cursors.h"
#include "tests/trackers/followed_run.h"
#include "tests/trackers/mlflow_stand_in.h"
#include "trackers/server/mlflow_names.h"

namespace {

using runner::store::RunStatus;
using tests::HttpReply;
using tracker_tests::FollowedRun;
using tracker_tests::MlflowStandIn;
using Points = std::multiset<MlflowStandIn::Point>;

std::string block(const MlflowStandIn& server, const std::string& more = "") {
  return R"({"type": "mlflow", "tracking_uri": ")" + server.url() + "\"" + more + "}";
}

MlflowStandIn::Run& only_run(MlflowStandIn& server) {
  REQUIRE(server.runs.size() == 1);
  return server.runs.begin()->second;
}

/// Two points, a text and the end, which take every kind of request there is.
void write_small_run(FollowedRun& f) {
  f.log(1, 0.5);
  f.log(2, 0.25);
  f.text(2, "sample", "to be");
  f.commit();
  f.writer->finish(RunStatus::kFinished, "");
}

/// Many faults are many warnings.
struct Quiet {
  Quiet() { runner::core::configure_log({runner::core::LogLevel::kError}); }
  ~Quiet() { runner::core::configure_log({}); }
};

const Points kSmallRun = {{"loss", 1, "0.5"}, {"loss", 2, "0.25"}};

}  // namespace

TEST_CASE("a run is made on an MLflow server", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  f.log(1, std::numeric_limits<double>::quiet_NaN());
  f.log(2, std::numeric_limits<double>::infinity());
  f.log(3, -std::numeric_limits<double>::infinity(), "val/loss");
  f.log(4, 1e-300);
  f.text(4, "sample", "to be");
  f.commit();
  f.writer->finish(RunStatus::kFinished, "");
  const auto result =
      f.follow(block(server, R"(, "experiment_name": "many", "tags": {"team": "a"}, "description": "*b*")"));
  CHECK(result.problem.empty());
  CHECK(result.points == 4);
  CHECK(server.experiments.contains("many"));
  const MlflowStandIn::Run& run = only_run(server);
  CHECK(run.points() == Points{{"loss", 1, "\"NaN\""},
                               {"loss", 2, "\"Infinity\""},
                               {"loss", 4, "1e-300"},
                               {"val/loss", 3, "\"-Infinity\""}});
  CHECK(run.status == "FINISHED");
  CHECK(run.name == "tiny");
  CHECK(run.params == std::map<std::string, std::string>{
                          {"optimizer.type", "adamw"}, {"optimizer.lr", "0.001"}, {"training.max_steps", "10"}});
  CHECK(run.tags.at("team") == "a");
  CHECK(run.tags.at("keep") == "true");
  CHECK(run.tags.at("mlflow.note.content") == "*b*");
  CHECK(run.tags.at("mlflow.source.name") == "roux run recipe.yaml");
  CHECK(run.artifacts == std::map<std::string, std::string>{{"texts/sample/step-4.txt", "to be"}});
}

TEST_CASE("a later call continues the same run", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  f.log(1, 0.5);
  f.commit();
  f.follow(block(server));
  f.log(2, 0.25);
  f.commit();
  CHECK(f.follow(block(server)).points == 1);
  CHECK(only_run(server).points() == kSmallRun);
}

TEST_CASE("a password in the server's address is used, and not written down", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  const std::string host = server.url().substr(std::string("http://").size());
  f.log(1, 0.5);
  f.commit();
  CHECK(f.follow(R"({"type": "mlflow", "tracking_uri": "http://me:hush@)" + host + "\"}").problem.empty());
  CHECK(only_run(server).points() == Points{{"loss", 1, "0.5"}});
  CHECK(server.authorization == "Basic bWU6aHVzaA==");
  CHECK(runner::store::read_cursors(f.run.dir).at("tool").state.find("tracking_uri")->as_string() == server.url());
}

TEST_CASE("more than one request holds is sent in several", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  for (int step = 1; step <= 2500; ++step) f.log(step, step);
  f.commit();
  const auto result = f.follow(block(server));
  CHECK(result.points == 2500);
  CHECK(result.rejected_points == 0);
  CHECK(only_run(server).points().size() == 2500);
}

TEST_CASE("whatever a server does at whatever request, it has each point once in the end",
          "[trackers][mlflow][outage]") {
  using Fate = HttpReply::Fate;
  struct Case {
    const char* name;
    MlflowStandIn::Fault fault;
    bool pauses;
  };
  const Case cases[] = {
      {"answers 500", {{500, "out of order", Fate::kAnswer}, false}, false},
      {"answers 503 and has done it", {{503, "", Fate::kAnswer}, true}, false},
      {"answers 429", {{429, "", Fate::kAnswer}, false}, false},
      {"drops the connection", {{0, "", Fate::kDrop}, false}, false},
      {"does it and drops the connection", {{0, "", Fate::kDrop}, true}, false},
      {"refuses who asks", {{401, "who are you", Fate::kAnswer}, false}, true},
      {"forbids", {{403, "", Fate::kAnswer}, false}, true},
  };
  const Quiet quiet;
  FollowedRun f;
  write_small_run(f);
  f.meanwhile.next = [] { return true; };
  int healthy = 0;
  {
    MlflowStandIn server;
    f.follow(block(server));
    healthy = server.requests;
    CHECK(healthy >= 9);
  }
  for (const Case& c : cases) {
    for (int at = 0; at < healthy; ++at) {
      const std::string name = c.name + (" at request " + std::to_string(at));
      INFO(name);
      MlflowStandIn server;
      server.fault = [&](int request) { return request == at ? std::optional(c.fault) : std::nullopt; };
      const auto result = f.follow(block(server), /*until_end=*/true, name);
      CHECK(result.problem.empty() != c.pauses);
      if (c.pauses) f.follow(block(server), false, name);  // as `roux sync` does later
      const MlflowStandIn::Run& run = only_run(server);
      CHECK(run.points() == kSmallRun);
      CHECK(run.status == "FINISHED");
      CHECK(run.artifacts.size() == 1);
      CHECK(run.params.size() == 3);
    }
  }
}

TEST_CASE("a hanging request is cancelled, and retried", "[trackers][mlflow][outage]") {
  FollowedRun f;
  write_small_run(f);
  f.meanwhile.next = [] { return true; };
  MlflowStandIn server;
  server.fault = [](int request) {
    return request < 15 && request % 5 == 4 ? std::optional(MlflowStandIn::Fault{{0, "", HttpReply::Fate::kHang}, true})
                                            : std::nullopt;
  };
  const auto result = f.follow(block(server, R"(, "request_timeout": "0.5s")"), /*until_end=*/true);
  CHECK(result.problem.empty());
  CHECK(only_run(server).points() == kSmallRun);
}

TEST_CASE("what a server refuses is left out, and the rest arrives", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  f.log(1, 0.5);
  f.commit();
  f.follow(block(server));
  f.log(2, 7);
  f.commit();
  server.fault = [first = server.requests](int request) {  // after the look at the run comes the batch
    return request == first + 1 ? std::optional(MlflowStandIn::Fault{{400, "never", HttpReply::Fate::kAnswer}, false})
                                : std::nullopt;
  };
  CHECK(f.follow(block(server)).rejected_points == 1);
  f.log(3, 0.25);
  f.commit();
  f.follow(block(server));
  CHECK(only_run(server).points() == Points{{"loss", 1, "0.5"}, {"loss", 3, "0.25"}});
}

TEST_CASE("steps that are done again add what differs", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  for (int step = 1; step <= 3; ++step) f.log(step, 10 + step);
  f.log(3, std::numeric_limits<double>::infinity(), "val/loss");
  f.commit();
  f.follow(block(server));
  f.writer->rewind(1);
  f.clock.now_ms += 1000;
  f.log(2, 12);
  f.commit();
  f.follow(block(server));
  f.log(3, 33);
  f.log(3, std::numeric_limits<double>::infinity(), "val/loss");
  f.log(4, 14);
  f.commit();
  f.follow(block(server));
  CHECK(only_run(server).points() == Points{{"loss", 1, "11"},
                                            {"loss", 2, "12"},
                                            {"loss", 3, "13"},
                                            {"loss", 3, "33"},
                                            {"loss", 4, "14"},
                                            {"val/loss", 3, "\"Infinity\""}});
}

TEST_CASE("a request to an MLflow server identifies itself", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  f.log(1, 0.5);
  f.commit();
  f.follow(block(server, R"(, "username": "ada", "password": "secret")"));
  CHECK(server.authorization == "Basic YWRhOnNlY3JldA==");
  f.log(2, 0.25);
  f.commit();
  f.follow(block(server, R"(, "username": "ada", "token": "t0ken")"));
  CHECK(server.authorization == "Bearer t0ken");
}

TEST_CASE("a given run is resumed, or is the parent of a new one", "[trackers][mlflow]") {
  FollowedRun f;
  MlflowStandIn server;
  server.runs["given"] = {};
  f.log(1, 0.5);
  f.commit();
  SECTION("goes on") {
    f.follow(block(server, R"(, "run_id": "given")"));
    CHECK(only_run(server).points() == Points{{"loss", 1, "0.5"}});
  }
  SECTION("is the parent") {
    f.follow(block(server, R"(, "run_id": "given", "nested_run": true)"));
    REQUIRE(server.runs.size() == 2);
    CHECK(server.runs.at("run2").tags.at("mlflow.parentRunId") == "given");
    CHECK(server.runs.at("given").rows.empty());
  }
  SECTION("has to be there") {
    const auto result = f.follow(block(server, R"(, "run_id": "other")"));
    CHECK(result.problem == "MLflow at " + server.url() + " has no run other");
    CHECK(result.hint == "check that MLFLOW_TRACKING_URI is the server of this run");
  }
}

TEST_CASE("a name becomes one that MLflow takes, and no other's", "[trackers][mlflow]") {
  using trackers::mlflow_name;
  CHECK(mlflow_name("val/loss") == "val/loss");
  CHECK(mlflow_name("grad norm: layer-1.weight_0") == "grad norm: layer-1.weight_0");
  CHECK(mlflow_name("потери/損失") == "потери/損失");
  CHECK(mlflow_name("a@b") == "a_b_9cee6f58");
  CHECK(mlflow_name("a#b") != mlflow_name("a@b"));
  for (const char* path : {"", ".", "..", "/a", "a/", "a//b", "./a", "a/../b"}) {
    INFO(path);
    const std::string name = mlflow_name(path);
    CHECK(name != path);
    CHECK(name.find("..") == std::string::npos);
    CHECK(("/" + name + "/").find("//") == std::string::npos);
  }
  const std::string longest(250, 'x');
  CHECK(mlflow_name(longest) == longest);
  CHECK(mlflow_name(longest + "x").size() == 250);
  CHECK(mlflow_name(std::string(10'000, 'x') + "a") != mlflow_name(std::string(10'000, 'x') + "b"));
  CHECK(mlflow_name("\xff\xfe").starts_with("___"));
  CHECK(mlflow_name("\xF0\x9F\x94\xA5").starts_with("__"));
}
