#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "runner/core/json.h"
#include "runner/transfer/import.h"
#include "runner/transfer/import_mlflow.h"
#include "trackers/server/mlflow_server.h"
#include "trackers/tracker.h"

// A server of MLflow, by its REST interface: experiments/search, runs/search and metrics/get-history, page by page.

namespace runner::transfer {
namespace {

using core::json_quote;
using nlohmann::json;
using trackers::MlflowServer;

constexpr int kPage = 1000;            // of runs and of experiments
constexpr int kPointsOfPage = 25'000;  // what a server gives at most

/// What a browser shows for an address: `http://HOST:PORT/#/experiments/1/runs/abc`. The last two may be missing.
struct MlflowUrl {
  std::string uri, experiment, run;
};

std::string after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const std::string rest = text.substr(at + word.size());
  return rest.substr(0, rest.find_first_of("/?"));
}

MlflowUrl parse_url(const std::string& address) {
  const std::size_t hash = address.find('#');
  MlflowUrl url{address.substr(0, hash), "", ""};
  while (url.uri.ends_with("/")) url.uri.pop_back();
  if (hash == std::string::npos) return url;
  const std::string shown = address.substr(hash);
  url.experiment = after(shown, "/experiments/");
  url.run = after(shown, "/runs/");
  return url;
}

/// A number, or the words that JSON has none for.
double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string word = value.is_string() ? value.get<std::string>() : "";
  const double infinity = std::numeric_limits<double>::infinity();
  if (word == "Infinity") return infinity;
  return word == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

/// MLflow writes 64-bit integers as numbers or as text.
std::int64_t integer_of(const json& object, const char* key) {
  const json value = object.value(key, json());
  if (value.is_number()) return value.get<std::int64_t>();
  return value.is_string() ? std::atoll(value.get<std::string>().c_str()) : 0;
}

std::string text_of(const json& object, const char* key) {
  const json value = object.value(key, json());
  return value.is_string() ? value.get<std::string>() : "";
}

class Reader {
 public:
  explicit Reader(MlflowUrl url) : url_(std::move(url)), server_(url_.uri, trackers::mlflow_http_options()) {}

  std::vector<ForeignRun> runs() {
    std::vector<ForeignRun> found;
    if (!url_.run.empty()) {
      found.push_back(read(server_.get("runs/get", "?run_id=" + trackers::url_encoded(url_.run)).at("run")));
      return found;
    }
    std::string experiments = json_quote(url_.experiment);
    if (url_.experiment.empty()) experiments = all_experiments();
    if (experiments.empty()) return found;
    const std::string search = R"({"experiment_ids":[)" + experiments + R"(],"max_results":)" + std::to_string(kPage);
    each_page("runs/search", search, "runs", [&](const json& run) { found.push_back(read(run)); });
    return found;
  }

 private:
  /// `begin` is the request without its end.
  template <typename Take>
  void each_page(const char* path, const std::string& begin, const char* what, Take take) {
    std::string token;
    do {
      const std::string page = token.empty() ? "" : R"(,"page_token":)" + json_quote(token);
      const json answer = server_.post(path, begin + page + "}");
      for (const json& one : answer.value(what, json::array())) take(one);
      token = text_of(answer, "next_page_token");
    } while (!token.empty());
  }

  std::string all_experiments() {
    std::string ids;
    each_page("experiments/search", R"({"max_results":)" + std::to_string(kPage), "experiments",
              [&](const json& one) { ids += (ids.empty() ? "" : ",") + json_quote(text_of(one, "experiment_id")); });
    return ids;
  }

  ForeignRun read(const json& found) {
    const json info = found.value("info", json::object()), data = found.value("data", json::object());
    const std::string id = text_of(info, "run_id");
    ForeignRun run;
    run.tool = "mlflow";
    run.source =
        trackers::without_credentials(url_.uri) + "/#/experiments/" + text_of(info, "experiment_id") + "/runs/" + id;
    run.name = text_of(info, "run_name").empty() ? id : text_of(info, "run_name");
    run.status = mlflow_status(text_of(info, "status"));
    run.began_ms = integer_of(info, "start_time");
    run.ended_ms = integer_of(info, "end_time");
    for (const json& parameter : data.value("params", json::array())) {
      run.parameters.set(text_of(parameter, "key"), mlflow_parameter(text_of(parameter, "value")));
    }
    for (const json& tag : data.value("tags", json::array())) {
      const std::string key = text_of(tag, "key"), value = text_of(tag, "value");
      if (key == "mlflow.note.content") run.note = value;
      if (!key.starts_with("mlflow.")) run.tags.push_back(key + "=" + value);
    }
    for (const json& metric : data.value("metrics", json::array())) {
      const std::string key = text_of(metric, "key");
      run.series[key] = history(id, key);
    }
    return run;
  }

  std::vector<ForeignRun::Point> history(const std::string& id, const std::string& key) {
    std::vector<ForeignRun::Point> points;
    std::string token;
    do {
      const std::string page = token.empty() ? "" : "&page_token=" + trackers::url_encoded(token);
      const json answer = server_.get(
          "metrics/get-history", "?run_id=" + trackers::url_encoded(id) + "&metric_key=" + trackers::url_encoded(key) +
                                     "&max_results=" + std::to_string(kPointsOfPage) + page);
      for (const json& point : answer.value("metrics", json::array())) {
        points.push_back({integer_of(point, "step"), integer_of(point, "timestamp"), number_of(point.at("value"))});
      }
      token = text_of(answer, "next_page_token");
    } while (!token.empty());
    return points;
  }

  const MlflowUrl url_;
  MlflowServer server_;
};

}  // namespace

core::Result<std::vector<ForeignRun>> read_mlflow_server(const std::string& address) {
  try {
    auto runs = Reader(parse_url(address)).runs();
    if (runs.empty()) {
      return core::Failure{"MLflow at " + trackers::without_credentials(address) + " has no runs there",
                           "check the id of the experiment; deleted runs are not imported"};
    }
    return runs;
  } catch (const trackers::TrackerError& error) {
    return core::Failure{error.what(), error.hint()};
  } catch (const json::exception&) {
    return core::Failure{"MLflow at " + trackers::without_credentials(address) + " is not an MLflow server",
                         "check the address"};
  }
}

}  // namespace runner::transfer
