// Events: what clearml's own offline sessions hold, as Task.import_offline_session reads them.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generated/tracker/clearml.h"  // Config; declares make()
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/net/digest.h"
#include "runner/net/environment.h"
#include "trackers/io/config_values.h"
#include "trackers/io/json_text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/owned_folder.h"
#include "trackers/io/png.h"
#include "trackers/io/record_file.h"
#include "trackers/io/safe_name.h"
#include "trackers/io/zip_folder.h"
#include "trackers/tracker.h"

namespace trackers::clearml {
namespace {

using runner::net::environment;
using runner::net::sha256;

namespace fs = std::filesystem;
using runner::core::json_quote;
using runner::core::Node;

constexpr NumberWords kWords = {"null", "null", "null"};  // in a histogram; points that are no number are left out
constexpr std::size_t kIdDigits = 32, kEventsMax = 200;
constexpr std::string_view kOfMachine = "system/";

/// Where a value is drawn.
struct PlotKey {
  std::string title, series;
};

PlotKey plot_key(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == name.size()) return {name, "train"};
  return {name.substr(slash + 1), name.substr(0, slash)};
}

std::string json_list(const std::vector<std::string>& items) { return "[" + runner::core::joined(items, ",") + "]"; }

const char* type_word(const Node& value) {
  if (value.is_bool()) return "bool";
  if (value.is_integer()) return "int";
  return value.is_number() ? "float" : "str";
}

class ClearMl final : public Tracker {
 public:
  ClearMl(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    run_ = run;
    id_ = "offline-" + sha256(run.id).substr(0, kIdDigits);
    project_ = environment("CLEARML_PROJECT").value_or(config_.project_name.value_or(run.project));
    task_ = environment("CLEARML_TASK").value_or(config_.task_name.value_or(fs::path(run.dir).filename().string()));
    folder_ = fs::absolute(config_.dir.value_or(run.dir + "/" + name_)).string() + "/" + id_;
    const OwnedFolder owned{folder_, run.id, name_};
    std::int64_t metrics_bytes = 0, log_bytes = 0;
    if (state.is_mapping()) {
      owned.check();
      metrics_bytes = state.find("metrics_bytes")->as_integer();
      log_bytes = state.find("log_bytes")->as_integer();
    } else {
      owned.begin();
    }
    metrics_.emplace(folder_ + "/metrics.jsonl", metrics_bytes);
    log_.emplace(folder_ + "/log.jsonl", log_bytes);
  }

  bool restarts_after_rewind() const override { return true; }

  void log(std::span<const Point> points) override {
    std::vector<std::string> events;
    rejected_points_ = 0;
    for (const Point& point : points) {
      if (!std::isfinite(point.value)) {
        ++rejected_points_;
        warn_rejected(point);
        continue;
      }
      const PlotKey plot = point.is_system_metric && point.name->starts_with(kOfMachine)
                               ? PlotKey{":monitor:machine", point.name->substr(kOfMachine.size())}
                               : plot_key(*point.name);
      events.push_back(event("training_stats_scalar", plot, point.step, point.time_ms)
                           .json("value", number_text(point.value, kWords))
                           .str());
      if (events.size() == kEventsMax) add(*metrics_, std::exchange(events, {}));
    }
    add(*metrics_, events);
  }

  std::int64_t rejected_points() const override { return rejected_points_; }

  void log_text(const Text& text) override {
    add(*log_, {line(text.name + " at step " + std::to_string(text.step) + ":\n" + text.text, false, text.time_ms)});
  }

  void log_console(std::span<const ConsoleLine> lines) override {
    std::vector<std::string> events;
    for (const ConsoleLine& each : lines) events.push_back(line(each.text, each.is_error, each.time_ms));
    add(*log_, events);
  }

  void log_histogram(const Histogram& histogram) override {
    std::vector<std::string> middles, counts;
    const double width = (histogram.most - histogram.least) / static_cast<double>(histogram.counts.size());
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      middles.push_back(number_text(histogram.least + (static_cast<double>(i) + 0.5) * width, kWords));
      counts.push_back(number_text(histogram.counts[i], kWords));
    }
    add_plot(histogram, JsonObject().text("type", "bar").json("x", json_list(middles)).json("y", json_list(counts)));
  }

  void log_table(const Table& table) override {
    std::vector<std::string> head, columns;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      std::vector<std::string> cells;
      for (const auto& row : table.rows) cells.push_back(runner::core::to_json(row[i], -1));
      head.push_back(json_quote(table.columns[i]));
      columns.push_back(json_list(cells));
    }
    add_plot(table, JsonObject()
                        .text("type", "table")
                        .json("header", JsonObject().json("values", json_list(head)).str())
                        .json("cells", JsonObject().json("values", json_list(columns)).str()));
  }

  void log_image(const Image& image) override {
    const PlotKey plot = plot_key(image.name);
    const std::string key = safe_name(project_) + "/" + safe_name(task_) + "." + id_ + "/metrics/" +
                            safe_name(plot.title) + "/" + safe_name(plot.series) + "/" + safe_name(image.name) + "_" +
                            std::to_string(image.step) + ".png";
    const fs::path path = fs::path(folder_) / "data" / key;
    runner::core::make_folders(path.parent_path().string()).value();
    write(path.string(), read_png(image.path).bytes);
    add(*metrics_, {event("training_debug_image", plot, image.step, image.time_ms)
                        .text("key", key)
                        .text("url", "file://" + path.string())
                        .str()});
  }

  void flush(bool durable) override {
    metrics_->flush(durable);
    log_->flush(durable);
  }

  Node state() const override {
    Node state = Node::mapping();
    state.set("metrics_bytes", Node::integer(metrics_->bytes()));
    state.set("log_bytes", Node::integer(log_->bytes()));
    return state;
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    write(folder_ + "/task.json", task_json());
    zip_folder(folder_, folder_ + ".zip");
  }

 private:
  static void write(const std::string& path, const std::string& content) {
    const auto written = runner::core::write_file_atomic(path, content);
    if (!written) throw TrackerError(TrackerError::Remedy::kRetry, written.failure().message, written.failure().hint);
  }

  /// A line that is not a list would make the importer repeat the previous one.
  static void add(RecordFile& file, const std::vector<std::string>& events) {
    if (!events.empty()) file.append(json_list(events) + "\n");
  }

  JsonObject event(const char* type, const PlotKey& plot, std::int64_t step, std::int64_t time_ms) const {
    JsonObject object;
    object.text("type", type).text("task", id_).integer("timestamp", time_ms).integer("iter", step);
    object.text("metric", plot.title).text("variant", plot.series);
    return object;
  }

  std::string line(const std::string& text, bool is_error, std::int64_t time_ms) const {
    return JsonObject()
        .text("type", "log")
        .text("task", id_)
        .integer("timestamp", time_ms)
        .text("level", is_error ? "warning" : "info")
        .text("worker", runner::core::host_name())
        .text("msg", text)
        .str();
  }

  template <typename Thing>
  void add_plot(const Thing& thing, const JsonObject& trace) {
    const std::string plot = JsonObject()
                                 .json("data", json_list({trace.str()}))
                                 .json("layout", JsonObject().text("title", thing.name).str())
                                 .str();
    add(*metrics_, {event("plot", plot_key(thing.name), thing.step, thing.time_ms).text("plot_str", plot).str()});
  }

  void warn_rejected(const Point& point) {
    if (std::exchange(told_left_out_, true)) return;
    runner::core::log_warning(
        "tracker " + name_ + ": ClearML does not support NaN and infinity: " + runner::core::quote(*point.name) +
        " is skipped at step " + std::to_string(point.step) + ", as are later ones; they are counted");
  }

  std::string task_json() const {
    std::string all;
    for (const auto& [name, value] : config_values(run_.config)) {
      std::string path = name;
      std::replace(path.begin(), path.end(), '.', '/');
      all += (all.empty() ? "" : ",") + json_quote(path) + ":" +
             JsonObject()
                 .text("section", "General")
                 .text("name", path)
                 .text("value", value.scalar_text())
                 .text("type", type_word(value))
                 .text("description", "")
                 .str();
    }
    std::vector<std::string> tags;
    for (const auto* list : {&config_.tags, &run_.tags}) {
      for (const std::string& tag : *list) tags.push_back(json_quote(tag));
    }
    const std::string command = runner::core::joined(run_.command_line, " ");
    return JsonObject()
        .text("id", id_)
        .text("name", task_)
        .text("project_name", project_)
        .text("type", to_text(config_.task_type))
        .json("tags", json_list(tags))
        .text("comment", config_.comment.value_or(""))
        .json("hyperparams", JsonObject().json("General", "{" + all + "}").str())
        .json("configuration", JsonObject()
                                   .json("recipe", JsonObject()
                                                       .text("name", "recipe")
                                                       .text("type", "yaml")
                                                       .text("value", runner::core::to_yaml(run_.config))
                                                       .str())
                                   .str())
        .json("execution", R"({"artifacts":[],"parameters":{}})")
        .json("script", JsonObject().text("entry_point", command).str())
        .json("output", "{}")
        .text("offline_folder", "")
        .json("offline_output_models", "[]")
        .str();
  }

  const Config config_;
  const std::string name_;
  Run run_;
  std::string id_, project_, task_, folder_;
  std::optional<RecordFile> metrics_, log_;
  std::int64_t rejected_points_ = 0;  // of the last log()
  bool told_left_out_ = false;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<ClearMl>(config, inputs.name);
}

}  // namespace trackers::clearml
