#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process/http_server.h"
#include "tests/trackers/followed_run.h"

namespace {

using runner::store::RunStatus;
using tracker_tests::FollowedRun;

/// Keeps what was posted, and answers `status`.
struct Listener {
  int status = 200;
  std::vector<std::string> bodies;
  std::map<std::string, std::string> headers;  // of the last request
  tests::HttpServer server{[this](const tests::HttpRequest& request) {
    headers = request.headers;
    if (status == 200) bodies.push_back(request.body);
    return tests::HttpReply{status, "no"};
  }};
  std::string block(const std::string& more) const {
    return R"({"type": "webhook", "url": ")" + server.url() + "\", " + more + "}";
  }
};

}  // namespace

TEST_CASE("a webhook gets what it subscribed to, once", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  const std::string block = listener.block(
      R"("events": ["started", "failed"], "when": "val/loss < 2", "headers": {"X-Team": "a"},
         "secret_headers": {"Authorization": "Bearer t"},
         "body": "{\"text\": \"{name} {event} {step} {metric} {value} {reason} {other}\"}")");
  f.log(1, 3, "val/loss");
  f.commit();
  f.follow(block);
  f.log(2, 1.5, "val/loss");
  f.log(3, 1, "val/loss");
  f.commit();
  f.follow(block);
  f.writer->finish(RunStatus::kFailed, "a \"word\"");
  f.follow(block);
  f.follow(block);
  CHECK(listener.bodies == std::vector<std::string>{R"({"text": "tiny started 0    {other}"})",
                                                    R"({"text": "tiny metric 2 val/loss 1.5  {other}"})",
                                                    R"({"text": "tiny failed 3   a \"word\" {other}"})"});
  CHECK(listener.headers.at("x-team") == "a");
  CHECK(listener.headers.at("authorization") == "Bearer t");
  CHECK(listener.headers.at("content-type") == "application/json");
}

TEST_CASE("without a template a webhook gets an object", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  f.log(7, 1);
  f.commit();
  f.writer->finish(RunStatus::kFinished, "");
  f.follow(listener.block(R"("events": ["finished"])"));
  CHECK(listener.bodies ==
        std::vector<std::string>{R"({"event":"finished","id":")" + f.run.id + R"(-finished-7","run":")" + f.run.id +
                                 R"(","name":"tiny","project":"tiny","dir":")" + f.run.dir +
                                 R"(","step":7,"time":"1800000000.000"})"});
}

TEST_CASE("a webhook gets later what it missed", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  listener.status = 503;
  f.log(1, 1);
  f.commit();
  f.writer->finish(RunStatus::kFinished, "");
  CHECK(f.follow(listener.block(R"("events": ["finished"])")).problem == "the webhook answers 503: \"no\"");
  listener.status = 200;
  CHECK(f.follow(listener.block(R"("events": ["finished"])")).problem.empty());
  CHECK(listener.bodies.size() == 1);
}

TEST_CASE("an event that a webhook refuses costs the others nothing", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  listener.status = 400;
  f.log(1, 1);
  f.commit();
  CHECK(f.follow(listener.block(R"("events": ["started", "finished"])")).problem.empty());
  listener.status = 200;
  f.writer->finish(RunStatus::kFinished, "");
  CHECK(f.follow(listener.block(R"("events": ["started", "finished"])")).problem.empty());
  REQUIRE(listener.bodies.size() == 1);
  CHECK(listener.bodies[0].starts_with(R"({"event":"finished")"));
}

TEST_CASE("a secret address is not printed", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  listener.status = 401;
  f.log(1, 1);
  f.commit();
  const auto result =
      f.follow(R"({"type": "webhook", "events": ["started"], "secret_url": ")" + listener.server.url() + R"(/T0P"})");
  CHECK(result.problem == "the webhook at secret_url does not accept the event started");
}

TEST_CASE("a secret may lie in a file", "[trackers][webhook]") {
  FollowedRun f;
  Listener listener;
  const std::string path = f.output.path + "/secret";
  std::ofstream(path) << listener.server.url() << "\r\n";
  f.log(1, 1);
  f.commit();
  const std::string file = R"({"file": ")" + path + "\"}";
  const std::string block = R"({"type": "webhook", "events": ["started"], "secret_url": )" + file +
                            R"(, "secret_headers": {"X-Key": )" + file + "}}";
  CHECK(f.follow(block).problem.empty());
  CHECK(listener.bodies.size() == 1);
  CHECK(listener.headers.at("x-key") == listener.server.url());
  std::ofstream(path, std::ios::trunc) << "\n";
  CHECK_THROWS_WITH(f.follow(block), "the file of a secret is empty: " + path);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(f.follow(block), "the file of a secret: cannot read " + path + ": file not found");
}

TEST_CASE("a condition that is none is refused", "[trackers][webhook]") {
  for (const char* text : {"", "loss", "< 2", "loss <", "loss < x", "loss = 2"}) {
    INFO(text);
    FollowedRun f;
    Listener listener;
    f.log(1, 1);
    f.commit();
    const auto result = f.follow(listener.block(R"("when": ")" + std::string(text) + "\""));
    CHECK(result.problem == "when is \"" + std::string(text) + "\", which is not a condition");
  }
}
