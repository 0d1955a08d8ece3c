#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "generated/tracker/mlflow.h"  // Config; declares make()
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/net/environment.h"
#include "trackers/io/artifact_files.h"
#include "trackers/io/config_values.h"
#include "trackers/io/crc32c.h"
#include "trackers/io/json_text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/png.h"
#include "trackers/server/mlflow_names.h"
#include "trackers/server/mlflow_server.h"
#include "trackers/tracker.h"

namespace trackers::mlflow {
namespace {

using runner::net::environment;
using runner::net::environment_flag;

using nlohmann::json;
using runner::core::json_quote;
using runner::core::Node;
using Remedy = TrackerError::Remedy;

// MLflow's limits of a request, and of a value.
constexpr std::size_t kPointsMax = 800;  // the limit is 1000, but with the longest names that exceeds a megabyte
constexpr std::size_t kPairsMax = 100;
constexpr std::size_t kParamMax = 6000, kTagMax = 8000;
constexpr std::size_t kHistoryPage = 25'000;
// "NaN" and the like are texts there; a bare NaN would be stored as 0.
constexpr NumberWords kWords = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
constexpr const char* kOurs = "roux.run_id";  // the tag by which a run is found again that was made and not recorded

constexpr const char* kTables = "mlflow.loggedArtifacts";

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

json to_json(const Pairs& pairs) {
  json list = json::array();
  for (const auto& [key, value] : pairs) list.push_back({{"key", key}, {"value", value}});
  return list;
}

std::string checksum(const std::string& bytes) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", crc32c(bytes));
  return text;
}

std::string user_name() {
  const passwd* user = getpwuid(getuid());
  return user != nullptr ? user->pw_name : std::to_string(getuid());
}

std::string given_or(const std::optional<std::string>& given, const char* variable, const std::string& otherwise = "") {
  return given ? *given : environment(variable).value_or(otherwise);
}

const char* status_of(Ending ending) {
  switch (ending) {
    case Ending::kFinished: return "FINISHED";
    case Ending::kStopped: return "KILLED";
    case Ending::kFailed:
    case Ending::kCrashed: return "FAILED";
    case Ending::kOpen: break;
  }
  return "RUNNING";
}

/// A point that the server has, as it gives it back.
using Known = std::set<std::tuple<std::string, std::int64_t, std::string>>;

std::string value_text(const json& value) {
  if (value.is_string()) return '"' + value.get<std::string>() + '"';
  return number_text(value.get<double>(), kWords);
}

class Mlflow final : public Tracker {
 public:
  explicit Mlflow(Config config) : config_(std::move(config)) {}

  void check(const Node& state) const override { static_cast<void>(address(state)); }

  void start(const Run& run, const Node& state) override {
    try {
      go_on(run, state);
    } catch (const json::exception&) {  // JSON, but not the expected fields
      throw server_->not_mlflow();
    }
  }

  // MLflow cannot delete a point. A repeated point with the same value exists already; with another value the step has
  // both, and the newer counts.
  void rewind(std::int64_t step) override {
    rewound_to_ = step;
    last_known_step_ = step;
    known_.clear();
    const json metrics = held_data().value("metrics", json::array());
    for (const json& metric : metrics) remember(metric.at("key"), step);
  }

  std::size_t points_max() const override { return kPointsMax; }

  void log(std::span<const Point> points) override {
    std::string body;
    for (const Point& point : points) {
      last_time_ms_ = std::max(last_time_ms_, point.time_ms);
      if (!is_known(point)) body += (body.empty() ? "" : ",") + metric_text(point);
    }
    if (body.empty()) return;
    if (status_ != "RUNNING") set_status("RUNNING", 0);
    server_->post("runs/log-batch", R"({"run_id":)" + json_quote(run_id_) + R"(,"metrics":[)" + body + "]}");
  }

  void log_text(const Text& text) override { put("texts/" + file_name(text) + ".txt", text.text); }

  void log_histogram(const Histogram& histogram) override {
    const json data = {{"name", histogram.name},
                       {"step", histogram.step},
                       {"min", histogram.least},
                       {"max", histogram.most},
                       {"counts", histogram.counts}};
    put("histograms/" + file_name(histogram) + ".json", text_of(data));
  }

  // As mlflow's log_image(key=, step=) calls them, so that the run's page shows them along the steps.
  void log_image(const Image& image) override {
    std::string key = mlflow_name(image.name);
    std::replace(key.begin(), key.end(), '/', '~');
    const std::string content = read_png(image.path).bytes;
    put("images/" + key + "+step+" + std::to_string(image.step) + "+timestamp+" + std::to_string(image.time_ms) + "+" +
            checksum(content) + ".png",
        content);
    if (std::exchange(told_of_images_, true)) return;
    send_pairs("tags", {{"mlflow.loggedImages", "True"}});
  }

  // As mlflow's log_table() writes them: the tag says which artifacts are tables.
  void log_table(const Table& table) override {
    const std::string path = "tables/" + file_name(table) + ".json";
    put(path, json_text(table));
    const json held = held_data().value("tags", json::array());
    json tables = json::array();
    for (const json& tag : held) {
      if (tag.at("key") == kTables) tables = json::parse(tag.at("value").get<std::string>(), nullptr, false);
    }
    const json entry = {{"path", path}, {"type", "table"}};
    if (!tables.is_array() || std::find(tables.begin(), tables.end(), entry) != tables.end()) return;
    tables.push_back(entry);
    if (const std::string value = text_of(tables); value.size() <= kTagMax) send_pairs("tags", {{kTables, value}});
  }

  void log_artifact(const Artifact& artifact) override {
    if (artifact.kind == "checkpoint" && !config_.log_checkpoints) return;
    const std::string to = mlflow_name(artifact.kind) + "/" + mlflow_name(artifact.name);
    for (const ArtifactFile& file : artifact_files(artifact, config_.artifact_size_limit)) {
      const std::string below = file.below.empty() ? "" : "/" + mlflow_name(file.below);
      server_->put_artifact(artifact_uri_, to + below, "", file.path.string());
    }
  }

  void flush(bool) override {}  // everything sent has arrived

  Node state() const override {
    Node state = Node::mapping();
    state.set("tracking_uri", Node::string(without_credentials(uri_)));  // this is written down
    state.set("run_id", Node::string(run_id_));
    state.set("configured", Node::boolean(true));
    state.set("last_time_ms", Node::integer(last_time_ms_));
    if (rewound_to_) state.set("rewound_to", Node::integer(*rewound_to_));
    return state;
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    set_status(status_of(end.ending), end.time_ms > 0 ? end.time_ms : last_time_ms_);
  }

 private:
  void go_on(const Run& run, const Node& state) {
    const auto kept = [&state](const char* key) { return state.is_mapping() ? state.find(key) : nullptr; };
    connect(state);
    const Node* run_id = kept("run_id");
    run_id_ = run_id != nullptr ? run_id->as_string() : found_or_made(run);
    look_at_run();
    const Node* last = kept("last_time_ms");
    last_time_ms_ = last != nullptr ? last->as_integer() : 0;
    if (kept("configured") == nullptr) tell_config(run);
    known_.clear();
    rewound_to_.reset();
    if (const Node* step = kept("rewound_to")) rewind(step->as_integer());
  }

  /// The server's address, without a path; kPause if not set.
  std::string address(const Node& state) const {
    const Node* before = state.is_mapping() ? state.find("tracking_uri") : nullptr;
    std::string uri = given_or(config_.tracking_uri, "MLFLOW_TRACKING_URI", before ? before->as_string() : "");
    if (!uri.starts_with("http://") && !uri.starts_with("https://")) {
      throw TrackerError(
          Remedy::kPause,
          uri.empty() ? "no MLflow server is set"
                      : "MLFLOW_TRACKING_URI is " + without_credentials(uri) + ", which is not the address of a server",
          "set MLFLOW_TRACKING_URI or the tracker's tracking_uri to http://HOST:PORT");
    }
    while (uri.ends_with("/")) uri.pop_back();
    return uri;
  }

  void connect(const Node& state) {
    uri_ = address(state);
    HttpOptions options = mlflow_http_options();
    options.user = config_.username.value_or(options.user);
    options.password = config_.password.value_or(options.password);
    options.token = config_.token.value_or(options.token);
    options.verify_tls = options.verify_tls && !config_.insecure_tls;
    options.ca_file = config_.server_cert_path.value_or(options.ca_file);
    options.client_certificate = config_.client_cert_path.value_or(options.client_certificate);
    options.timeout_s = config_.request_timeout.value_or(options.timeout_s);
    server_.emplace(uri_, options);
  }

  std::string found_or_made(const Run& run) {
    const std::string given = environment("MLFLOW_RUN_ID").value_or(config_.run_id.value_or(""));
    const bool nested = environment("MLFLOW_NESTED_RUN") ? environment_flag("MLFLOW_NESTED_RUN") : config_.nested_run;
    if (!given.empty() && !nested) return given;
    const std::string experiment = experiment_id(run);
    const json query = {{"experiment_ids", {experiment}},
                        {"filter", std::string("tags.`") + kOurs + "` = '" + run.id + "'"},
                        {"max_results", 1}};
    const json found = server_->post("runs/search", text_of(query));
    if (found.contains("runs") && !found["runs"].empty()) return found["runs"][0].at("info").at("run_id");
    json made = {{"experiment_id", experiment},
                 {"run_name", config_.run_name.value_or(run.name)},
                 {"start_time", run.created_ms},
                 {"user_id", user_name()},
                 {"tags", to_json(first_tags(run, nested ? given : ""))}};
    HttpRequest create = server_->post_request("runs/create", text_of(made));
    create.once = true;
    return server_->success(server_->ask(create)).at("run").at("info").at("run_id");
  }

  std::string experiment_id(const Run& run) {
    const std::string name =
        environment("MLFLOW_EXPERIMENT_NAME").value_or(config_.experiment_name.value_or(run.project));
    const HttpRequest by_name =
        server_->get_request("experiments/get-by-name", "?experiment_name=" + url_encoded(name));
    HttpAnswer answer = server_->ask(by_name);
    if (mlflow_error_code(answer) == "RESOURCE_DOES_NOT_EXIST") {
      json made = {{"name", name}};
      if (config_.artifact_location) made["artifact_location"] = *config_.artifact_location;
      const HttpAnswer created = server_->ask(server_->post_request("experiments/create", text_of(made)));
      // Another client may have been faster.
      if (mlflow_error_code(created) != "RESOURCE_ALREADY_EXISTS") require_success(created, server_->who());
      answer = server_->ask(by_name);
    }
    const json experiment = json::parse(require_success(answer, server_->who()).body, nullptr, false);
    if (!experiment.contains("experiment")) {
      throw server_->not_mlflow();
    }
    if (experiment["experiment"].value("lifecycle_stage", "") == "deleted") {
      throw TrackerError(Remedy::kPause, server_->who() + " has the experiment \"" + name + "\", but it is deleted",
                         "restore it there, or use another experiment_name");
    }
    return experiment["experiment"].at("experiment_id");
  }

  /// The first ones that a run is made with; the rest follows within the limit of a request.
  Pairs first_tags(const Run& run, const std::string& parent) const {
    Pairs tags = {{kOurs, run.id}, {"mlflow.user", user_name()}, {"mlflow.source.type", "LOCAL"}};
    const std::string command = runner::core::joined(run.command_line, " ");
    tags.emplace_back("mlflow.source.name", command.empty() ? "roux" : cut(command, kTagMax));
    if (!parent.empty()) tags.emplace_back("mlflow.parentRunId", parent);
    return tags;
  }

  Pairs own_tags(const Run& run) const {
    std::map<std::string, std::string> tags;
    for (const std::string& tag : run.tags) tags[mlflow_name(tag)] = "true";
    for (const auto& [key, value] : config_.tags) tags[mlflow_name(key)] = value;
    const json given = json::parse(environment("MLFLOW_TAGS").value_or("{}"), nullptr, false);
    if (!given.is_object()) {
      throw TrackerError(Remedy::kPause, "MLFLOW_TAGS is not a JSON object", R"(write it as '{"team": "language"}')");
    }
    for (const auto& [key, value] : given.items()) {
      tags[mlflow_name(key)] = value.is_string() ? value.get<std::string>() : text_of(value);
    }
    if (config_.description) tags["mlflow.note.content"] = *config_.description;
    Pairs pairs;
    for (const auto& [key, value] : tags) pairs.emplace_back(key, shortened("tag", key, value, kTagMax));
    return pairs;
  }

  /// Checks that it exists; gets its artifact location and status.
  void look_at_run() {
    const HttpAnswer answer = server_->ask(server_->get_request("runs/get", "?run_id=" + url_encoded(run_id_)));
    if (mlflow_error_code(answer) == "RESOURCE_DOES_NOT_EXIST") {
      throw TrackerError(Remedy::kPause, server_->who() + " has no run " + run_id_,
                         "check that MLFLOW_TRACKING_URI is the server of this run");
    }
    const json info = json::parse(require_success(answer, server_->who()).body).at("run").at("info");
    if (info.value("lifecycle_stage", "") == "deleted") {
      throw TrackerError(Remedy::kPause, server_->who() + " has the run " + run_id_ + " , but it is deleted",
                         "restore it there");
    }
    artifact_uri_ = info.value("artifact_uri", "");
    status_ = info.value("status", "");
  }

  /// Separately and before any metric, so that a refused one does not affect metrics.
  void tell_config(const Run& run) {
    Pairs params;
    for (const auto& [name, value] : config_values(run.config)) {
      const std::string key = mlflow_name(name);
      params.emplace_back(key, shortened("parameter", key, value.scalar_text(), kParamMax));
    }
    send_pairs("params", params);
    send_pairs("tags", own_tags(run));
    tell_data(run);
  }

  void send_pairs(const char* what, const Pairs& pairs) {
    for (std::size_t at = 0; at < pairs.size(); at += kPairsMax) {
      const Pairs some(pairs.begin() + static_cast<std::ptrdiff_t>(at),
                       pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), at + kPairsMax)));
      const json body = {{"run_id", run_id_}, {what, to_json(some)}};
      leaving_out([&] { server_->post("runs/log-batch", text_of(body)); });
    }
  }

  void tell_data(const Run& run) {
    const Node* data = run.config.find("data");
    if (data == nullptr) return;
    json sets = json::array();
    for (const auto& split : data->entries()) {
      if (!split.value.is_mapping()) continue;
      const std::string source = runner::core::to_json(split.value, -1);
      const Node* type = split.value.find("type");
      sets.push_back({{"tags", {{{"key", "mlflow.data.context"}, {"value", split.key}}}},
                      {"dataset",
                       {{"name", type != nullptr ? type->scalar_text() : split.key},
                        {"digest", checksum(source)},
                        {"source_type", "roux"},
                        {"source", source}}}});
    }
    if (sets.empty()) return;
    const json body = {{"run_id", run_id_}, {"datasets", sets}};
    leaving_out([&] { server_->post("runs/log-inputs", text_of(body)); });
  }

  void remember(const std::string& key, std::int64_t beyond) {
    std::string page;
    do {
      std::string query = "?run_id=" + url_encoded(run_id_) + "&metric_key=" + url_encoded(key) +
                          "&max_results=" + std::to_string(kHistoryPage);
      if (!page.empty()) query += "&page_token=" + url_encoded(page);
      const json history = server_->get("metrics/get-history", query);
      for (const json& metric : history.value("metrics", json::array())) {
        const std::int64_t step = metric.value("step", std::int64_t{0});
        if (step <= beyond) continue;
        known_.emplace(key, step, value_text(metric.at("value")));
        last_known_step_ = std::max(last_known_step_, step);
      }
      page = history.value("next_page_token", "");
    } while (!page.empty());
  }

  bool is_known(const Point& point) {
    if (!rewound_to_) return false;
    if (point.step > last_known_step_) {  // past earlier steps
      rewound_to_.reset();
      known_.clear();
      return false;
    }
    return known_.contains({mlflow_name(*point.name), point.step, number_text(point.value, kWords)});
  }

  std::string metric_text(const Point& point) {
    std::string& key = keys_[*point.name];
    if (key.empty()) key = R"({"key":)" + json_quote(mlflow_name(*point.name));
    return key + R"(,"value":)" + number_text(point.value, kWords) + R"(,"timestamp":)" +
           std::to_string(point.time_ms) + R"(,"step":)" + std::to_string(point.step) + "}";
  }

  void set_status(const std::string& status, std::int64_t end_ms) {
    json body = {{"run_id", run_id_}, {"status", status}};
    if (end_ms > 0) body["end_time"] = end_ms;
    server_->post("runs/update", text_of(body));
    status_ = status;
  }

  /// The run on the server: its parameters, tags and the last value of each metric.
  json held_data() { return server_->get("runs/get", "?run_id=" + url_encoded(run_id_)).at("run").at("data"); }

  template <typename Thing>
  static std::string file_name(const Thing& thing) {
    return mlflow_name(thing.name) + "/step-" + std::to_string(thing.step);
  }

  void put(const std::string& path, const std::string& content) { server_->put_artifact(artifact_uri_, path, content); }

  /// Reports params and tags that MLflow refuses, each reason once; the rest is not affected.
  template <typename Body>
  void leaving_out(Body body) {
    try {
      body();
    } catch (const TrackerError& error) {
      if (error.remedy() != Remedy::kReject) throw;
      if (std::exchange(told_, error.what()) == error.what()) return;
      runner::core::log_warning(std::string(error.what()) + (error.hint().empty() ? "" : "; " + error.hint()));
    }
  }

  static std::string shortened(const char* what, const std::string& key, const std::string& value, std::size_t most) {
    std::string fits = cut(value, most);
    if (fits.size() < value.size()) {
      runner::core::log_warning(std::string("the ") + what + " " + key + " is truncated to the " +
                                std::to_string(most) + " characters that MLflow accepts");
    }
    return fits;
  }

  const Config config_;
  std::string uri_, run_id_, artifact_uri_, status_;
  std::optional<MlflowServer> server_;
  std::int64_t last_time_ms_ = 0;
  std::optional<std::int64_t> rewound_to_;  // while steps are repeated that the server has points of: `known_`
  Known known_;
  std::int64_t last_known_step_ = 0;
  std::unordered_map<std::string, std::string> keys_;  // of metrics, as a request begins with them
  bool told_of_images_ = false;
  std::string told_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs&) { return std::make_shared<Mlflow>(config); }

}  // namespace trackers::mlflow
