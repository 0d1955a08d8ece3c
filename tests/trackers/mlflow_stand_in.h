#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "tests/support/process/http_server.h"

namespace tracker_tests {

/// Answers as an MLflow server does, limits included, as far as a tracker asks; the real one is asked in tests/verify.
class MlflowStandIn {
 public:
  using Point = std::tuple<std::string, std::int64_t, std::string>;  ///< name, step, value as it was sent
  struct Run {
    std::string status = "RUNNING", name;
    std::int64_t end_ms = 0;
    std::map<std::string, std::string> params, tags;
    std::set<std::tuple<std::string, std::int64_t, std::string, std::int64_t>> rows;  ///< Point and its time
    std::map<std::string, std::string> artifacts;
    std::multiset<Point> points() const;
  };
  /// What a request meets instead of an answer; nothing: it is answered.
  struct Fault {
    tests::HttpReply reply;
    bool stored = false;  ///< the server has done what was asked all the same
  };

  std::string url() const { return server_.url(); }

  std::map<std::string, Run> runs;
  std::map<std::string, std::string> experiments;  ///< name to id
  std::function<std::optional<Fault>(int request)> fault;
  int requests = 0;
  std::string authorization;  ///< of the last request

 private:
  tests::HttpReply handle(const tests::HttpRequest& request);
  tests::HttpReply answer(const tests::HttpRequest& request);
  tests::HttpReply log_batch(const std::string& body);

  tests::HttpServer server_{[this](const tests::HttpRequest& request) { return handle(request); }};
};

}  // namespace tracker_tests
