#include "tests/trackers/mlflow_stand_in.h"

#include <nlohmann/json.hpp>

namespace tracker_tests {
namespace {

using nlohmann::json;
using tests::HttpReply;
using tests::HttpRequest;

HttpReply refused(int status, const std::string& code, const std::string& why) {
  return {status, json({{"error_code", code}, {"message", why}}).dump()};
}

HttpReply done(const json& body = json::object()) { return {200, body.dump()}; }

/// What stands behind `name=` in a query; the tests' values need no decoding.
std::string asked(const std::string& path, const std::string& name) {
  const auto at = path.find(name + "=");
  if (at == std::string::npos) return "";
  const auto begin = at + name.size() + 1;
  return path.substr(begin, path.find('&', begin) - begin);
}

std::string decoded_slashes(std::string text) {
  for (std::size_t at; (at = text.find("%2F")) != std::string::npos;) text.replace(at, 3, "/");
  return text;
}

}  // namespace

std::multiset<MlflowStandIn::Point> MlflowStandIn::Run::points() const {
  std::multiset<Point> points;
  for (const auto& [name, step, value, time] : rows) points.emplace(name, step, value);
  return points;
}

HttpReply MlflowStandIn::handle(const HttpRequest& request) {
  const auto given = request.headers.find("authorization");
  authorization = given == request.headers.end() ? "" : given->second;
  const auto met = fault ? fault(requests) : std::nullopt;
  ++requests;
  if (!met) return answer(request);
  if (met->stored) answer(request);
  return met->reply;
}

HttpReply MlflowStandIn::answer(const HttpRequest& request) {
  constexpr const char* kApi = "/api/2.0/mlflow/";
  constexpr const char* kArtifacts = "/api/2.0/mlflow-artifacts/artifacts/";
  if (request.path.starts_with(kArtifacts)) {
    const std::string path = request.path.substr(std::string(kArtifacts).size());
    const auto slash = path.find('/');
    runs.at(path.substr(0, slash)).artifacts[path.substr(slash + 1)] = request.body;
    return done();
  }
  if (!request.path.starts_with(kApi)) return refused(404, "", "no such page");
  const std::string path = request.path.substr(std::string(kApi).size());
  const std::string call = path.substr(0, path.find('?'));
  if (call == "experiments/get-by-name") {
    const auto found = experiments.find(asked(path, "experiment_name"));
    if (found == experiments.end()) return refused(404, "RESOURCE_DOES_NOT_EXIST", "no such experiment");
    return done({{"experiment", {{"experiment_id", found->second}}}});
  }
  if (call == "runs/get" || call == "metrics/get-history") {
    const auto found = runs.find(asked(path, "run_id"));
    if (found == runs.end()) return refused(404, "RESOURCE_DOES_NOT_EXIST", "no such run");
    if (call == "runs/get") {
      json metrics = json::array();
      for (const auto& row : found->second.rows) metrics.push_back({{"key", std::get<0>(row)}});
      const json info = {{"run_id", found->first},
                         {"status", found->second.status},
                         {"artifact_uri", "mlflow-artifacts:/" + found->first}};
      return done({{"run", {{"info", info}, {"data", {{"metrics", metrics}}}}}});
    }
    json metrics = json::array();
    for (const auto& [name, step, value, time] : found->second.rows) {
      if (name != decoded_slashes(asked(path, "metric_key"))) continue;
      metrics.push_back({{"key", name}, {"step", step}, {"value", json::parse(value)}, {"timestamp", time}});
    }
    return done({{"metrics", metrics}});
  }
  const json body = json::parse(request.body);
  if (call == "experiments/create") {
    experiments[body.at("name")] = std::to_string(experiments.size() + 1);
    return done();
  }
  if (call == "runs/search") {
    json found = json::array();
    for (const auto& [id, run] : runs) {
      const auto tag = run.tags.find("roux.run_id");
      if (tag == run.tags.end() || body.at("filter") != "tags.`roux.run_id` = '" + tag->second + "'") continue;
      found.push_back({{"info", {{"run_id", id}}}});
    }
    return done({{"runs", found}});
  }
  if (call == "runs/create") {
    const std::string id = "run" + std::to_string(runs.size() + 1);
    Run& run = runs[id];
    run.name = body.at("run_name");
    for (const json& tag : body.at("tags")) run.tags[tag.at("key")] = tag.at("value");
    return done({{"run", {{"info", {{"run_id", id}}}}}});
  }
  if (call == "runs/log-batch") return log_batch(request.body);
  if (call == "runs/update") {
    Run& run = runs.at(body.at("run_id"));
    run.status = body.at("status");
    run.end_ms = body.value("end_time", std::int64_t{0});
    return done();
  }
  if (call == "runs/log-inputs") return done();
  return refused(404, "ENDPOINT_NOT_FOUND", "no such call");
}

HttpReply MlflowStandIn::log_batch(const std::string& text) {
  const json body = json::parse(text);
  Run& run = runs.at(body.at("run_id"));
  const json none = json::array();
  const json metrics = body.value("metrics", none), params = body.value("params", none),
             tags = body.value("tags", none);
  const auto bad = [](const std::string& why) { return refused(400, "INVALID_PARAMETER_VALUE", why); };
  if (text.size() > 1'000'000 || metrics.size() > 1000 || params.size() > 100 || tags.size() > 100) {
    return bad("too much in one request");
  }
  for (const json& param : params) {
    const auto known = run.params.find(param.at("key"));
    if (known != run.params.end() && known->second != param.at("value")) return bad("a parameter has another value");
  }
  for (const json& metric : metrics) {
    if (metric.at("key").get<std::string>().find('@') != std::string::npos) return bad("no such name");
  }
  for (const json& metric : metrics) {
    run.rows.emplace(metric.at("key"), metric.at("step"), metric.at("value").dump(), metric.at("timestamp"));
  }
  for (const json& param : params) run.params[param.at("key")] = param.at("value");
  for (const json& tag : tags) run.tags[tag.at("key")] = tag.at("value");
  return done();
}

}  // namespace tracker_tests
