#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "generated/tracker/webhook.h"  // Config; declares make()
#include "runner/core/clock.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "trackers/io/numbers.h"
#include "trackers/server/http.h"
#include "trackers/tracker.h"

namespace trackers::webhook {
namespace {

using runner::core::json_quote;
using runner::core::Node;
using Remedy = TrackerError::Remedy;

constexpr NumberWords kWords = {"NaN", "Infinity", "-Infinity"};
constexpr const char* kFields[] = {"event", "id",   "run",    "name",   "project", "dir",
                                   "step",  "time", "reason", "metric", "value",   "checkpoint"};

/// `val/loss < 2`.
struct Condition {
  std::string metric, comparison;
  double limit = 0;

  bool holds(double value) const {
    if (comparison == "<") return value < limit;
    if (comparison == "<=") return value <= limit;
    if (comparison == ">") return value > limit;
    return value >= limit;
  }
};

Condition read_condition(const std::string& text) {
  const auto at = text.find_last_of("<>");
  Condition condition;
  if (at != std::string::npos) {
    const bool equal = at + 1 < text.size() && text[at + 1] == '=';
    condition.metric = runner::core::trimmed(std::string_view(text).substr(0, at), " ");
    condition.comparison = text.substr(at, equal ? 2 : 1);
    const std::string limit(
        runner::core::trimmed(std::string_view(text).substr(at + condition.comparison.size()), " "));
    const auto read = std::from_chars(limit.data(), limit.data() + limit.size(), condition.limit);
    if (!condition.metric.empty() && read.ec == std::errc() && read.ptr == limit.data() + limit.size())
      return condition;
  }
  throw TrackerError(Remedy::kPause, "when is \"" + text + "\", which is not a condition",
                     "write a metric, one of < <= > >= and a number: val/loss < 2");
}

using Values = std::map<std::string, std::string>;

/// Replaces each known {word}, escaped for a JSON string; other braces stay.
std::string filled(const std::string& body, const Values& values) {
  std::string text;
  for (std::size_t at = 0; at < body.size();) {
    const auto close = body[at] == '{' ? body.find('}', at) : std::string::npos;
    const auto value = close == std::string::npos ? values.end() : values.find(body.substr(at + 1, close - at - 1));
    if (value == values.end()) {
      text += body[at++];
      continue;
    }
    const std::string quoted = json_quote(value->second);
    text += quoted.substr(1, quoted.size() - 2);
    at = close + 1;
  }
  return text;
}

std::string object_of(const Values& values) {
  std::string text;
  for (const char* field : kFields) {
    const auto value = values.find(field);
    if (value == values.end() || value->second.empty()) continue;
    text += (text.empty() ? "{" : ",") + json_quote(field) + ":" +
            (value->first == "step" ? value->second : json_quote(value->second));
  }
  return text + "}";
}

class Webhook final : public Tracker {
 public:
  explicit Webhook(Config config) : config_(std::move(config)) {}

  void start(const Run& run, const Node& state) override {
    HttpOptions options;
    options.timeout_s = config_.request_timeout;
    options.verify_tls = !config_.insecure_tls;
    options.ca_file = config_.server_cert_path.value_or("");
    options.client_certificate = config_.client_cert_path.value_or("");
    http_.emplace(options);
    if (config_.when) condition_ = read_condition(*config_.when);
    run_ = {{"run", run.id}, {"name", run.name}, {"project", run.project}, {"dir", run.dir}};
    met_ = state.is_mapping() && state.find("met")->as_bool();
    step_ = state.is_mapping() ? state.find("step")->as_integer() : 0;
    if (!state.is_mapping() && asked(Events::kStarted)) post_or_skip("started", run.created_ms, {});
  }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      if (!point.is_system_metric) step_ = std::max(step_, point.step);
      if (met_ || !condition_ || *point.name != condition_->metric || !condition_->holds(point.value)) continue;
      post(
          "metric", point.time_ms,
          {{"metric", *point.name}, {"value", number_text(point.value, kWords)}, {"step", std::to_string(point.step)}});
      met_ = true;
    }
  }

  void log_artifact(const Artifact& artifact) override {
    if (artifact.kind != "checkpoint" || !asked(Events::kCheckpoint)) return;
    step_ = std::max(step_, artifact.step);
    post("checkpoint", artifact.time_ms, {{"checkpoint", artifact.path}, {"step", std::to_string(artifact.step)}});
  }

  void flush(bool) override {}  // every post was answered

  Node state() const override {
    Node state = Node::mapping();
    state.set("met", Node::boolean(met_));
    state.set("step", Node::integer(step_));
    return state;
  }

  void finish(const End& end) override {
    const auto ended = [&](Events event) {
      if (asked(event)) post_or_skip(std::string(to_text(end.ending)), end.time_ms, {{"reason", end.reason}});
    };
    switch (end.ending) {
      case Ending::kOpen: return;
      case Ending::kFinished: return ended(Events::kFinished);
      case Ending::kFailed: return ended(Events::kFailed);
      case Ending::kStopped: return ended(Events::kStopped);
      case Ending::kCrashed: return ended(Events::kCrashed);
    }
  }

 private:
  bool asked(Events event) const {
    return std::find(config_.events.begin(), config_.events.end(), event) != config_.events.end();
  }

  /// At the run's start and end: a refusal there does not affect other events.
  void post_or_skip(const std::string& word, std::int64_t time_ms, const Values& values) {
    try {
      post(word, time_ms, values);
    } catch (const TrackerError& error) {
      if (error.remedy() != Remedy::kReject) throw;
      runner::core::log_warning(std::string(error.what()) + "; the event " + word + " is skipped");
    }
  }

  void post(const std::string& word, std::int64_t time_ms, Values values) {
    values.insert(run_.begin(), run_.end());
    values.emplace("event", word);
    values.emplace("step", std::to_string(step_));
    values.emplace("time", seconds_text(time_ms));
    values.emplace("id", run_.at("run") + "-" + word + "-" + values.at("step"));
    for (const char* field : kFields) values.emplace(field, "");
    HttpRequest request;
    request.method = "POST";
    request.url = config_.url ? *config_.url : config_.secret_url.value_or("");
    request.once = true;
    request.headers.emplace_back("Content-Type: application/json");
    for (const auto& [name, value] : config_.headers) request.headers.push_back(name + ": " + value);
    for (const auto& [name, value] : config_.secret_headers) request.headers.push_back(name + ": " + value);
    request.body = config_.body ? filled(*config_.body, values) : object_of(values);
    try {
      require_success(http_->send(request), "the webhook");
    } catch (const TrackerError& error) {
      if (config_.url) throw;
      // curl's messages name the host at most, ours the whole address.
      throw TrackerError(error.remedy(), "the webhook at secret_url does not accept the event " + word, error.hint());
    }
  }

  const Config config_;
  std::optional<Http> http_;
  std::optional<Condition> condition_;
  Values run_;
  bool met_ = false;
  std::int64_t step_ = 0;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs&) { return std::make_shared<Webhook>(config); }

}  // namespace trackers::webhook
