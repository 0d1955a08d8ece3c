// Messages: the schemas offline-*.schema.json in comet_ml.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generated/tracker/comet_ml.h"  // Config; declares make()
#include "runner/core/clock.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/net/digest.h"
#include "runner/net/environment.h"
#include "trackers/io/artifact_files.h"
#include "trackers/io/config_values.h"
#include "trackers/io/json_text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/owned_folder.h"
#include "trackers/io/png.h"
#include "trackers/io/record_file.h"
#include "trackers/io/safe_name.h"
#include "trackers/io/zip_folder.h"
#include "trackers/tracker.h"

namespace trackers::comet_ml {
namespace {

using runner::net::environment;
using runner::net::sha256;

namespace fs = std::filesystem;
using runner::core::json_quote;
using runner::core::Node;

constexpr NumberWords kWords = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};
constexpr std::size_t kIdDigits = 32;

/// Comet does not accept names with line breaks.
std::string one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return name;
}

class Comet final : public Tracker {
 public:
  Comet(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    run_ = run;
    const auto key = given(config_.experiment_key, "COMET_EXPERIMENT_KEY");
    key_ = key.value_or(sha256(run.id).substr(0, kIdDigits));
    const auto directory = given(config_.offline_directory, "COMET_OFFLINE_DIRECTORY");
    folder_ = fs::absolute(directory.value_or(run.dir + "/" + name_)).string() + "/" + key_;
    file_.reset();
    const OwnedFolder owned{folder_, run.id, name_, !key};
    if (state.is_mapping()) {
      owned.check();
      messages_ = state.find("messages")->as_integer();
      last_ms_ = state.find("last_ms")->as_integer();
      file_.emplace(folder_ + "/messages.json", state.find("bytes")->as_integer());
      return;
    }
    owned.begin();
    messages_ = 0;
    last_ms_ = run.created_ms;
    file_.emplace(folder_ + "/messages.json", 0);
    tell_about_run();
  }

  bool restarts_after_rewind() const override { return true; }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      const std::string metric = JsonObject()
                                     .text("metricName", one_line(*point.name))
                                     .json("metricValue", number_text(point.value, kWords))
                                     .integer("step", point.step)
                                     .json("epoch", "null")
                                     .str();
      add("metric_msg", at(point.time_ms).json("metric", metric));
    }
  }

  void log_text(const Text& text) override { add_file(text, "text-sample", ".txt", text.text); }

  void log_image(const Image& image) override { add_file(image, "visualization", ".png", read_png(image.path).bytes); }

  void log_table(const Table& table) override {
    std::string lines;
    const auto add_line = [&lines](const auto& cells, auto text_of) {
      std::string line;
      bool first = true;
      for (const auto& cell : cells)
        line += (std::exchange(first, false) ? "" : ",") + runner::core::csv_field(text_of(cell), ',');
      lines += line + "\r\n";
    };
    add_line(table.columns, [](const std::string& column) { return column; });
    for (const auto& row : table.rows) add_line(row, [](const Node& cell) { return cell.scalar_text(); });
    add_file(table, "asset", ".csv", lines);
  }

  void log_artifact(const Artifact& artifact) override {
    if (artifact.kind == "checkpoint" && !config_.log_checkpoints) return;
    for (const ArtifactFile& file : artifact_files(artifact, config_.artifact_size_limit)) {
      add_link(artifact, file.path, artifact.name + (file.below.empty() ? "" : "/" + file.below));
    }
  }

  void log_console(std::span<const ConsoleLine> lines) override {
    for (const ConsoleLine& line : lines) {
      add("standard_output", at(line.time_ms).text("output", line.text + "\n").flag("stderr", line.is_error));
    }
  }

  void flush(bool durable) override { file_->flush(durable); }

  Node state() const override {
    Node state = Node::mapping();
    state.set("bytes", Node::integer(file_->bytes()));
    state.set("messages", Node::integer(messages_));
    state.set("last_ms", Node::integer(last_ms_));
    return state;
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    for (const auto& entry : end.summary.entries()) add_other(entry.key, runner::core::to_json(entry.value, -1));
    add_other("ending", json_quote(to_text(end.ending)));
    file_->flush(true);
    std::string tags;
    std::vector<std::string> all = config_.tags;
    all.insert(all.end(), run_.tags.begin(), run_.tags.end());
    for (const std::string& tag : all) tags += (tags.empty() ? "" : ",") + json_quote(tag);
    const auto workspace = given(config_.workspace, "COMET_WORKSPACE");
    const std::string experiment =
        JsonObject()
            .text("project_name", given(config_.project_name, "COMET_PROJECT_NAME").value_or(run_.project))
            .json("workspace", workspace ? json_quote(*workspace) : "null")
            .text("offline_id", key_)
            .integer("start_time", run_.created_ms)
            .integer("stop_time", end.time_ms > 0 ? end.time_ms : last_ms_)
            .json("tags", "[" + tags + "]")
            .text("resume_strategy", "get_or_create")
            .flag("user_provided_experiment_key", true)
            .flag("customer_error_reported", false)
            .str();
    runner::core::write_file_atomic(folder_ + "/experiment.json", experiment).value();
    zip_folder(folder_, folder_ + ".zip");
  }

 private:
  static std::optional<std::string> given(const std::optional<std::string>& value, const char* variable) {
    return value ? value : environment(variable);
  }

  JsonObject at(std::int64_t time_ms) {
    last_ms_ = std::max(last_ms_, time_ms);
    return std::move(JsonObject().integer("local_timestamp", time_ms));
  }

  void add(const char* type, JsonObject payload) {
    payload.integer("message_id", ++messages_);
    file_->append(JsonObject().text("type", type).json("payload", payload.str()).str() + "\n");
  }

  void add_other(const std::string& key, const std::string& json) {
    add("log_other", JsonObject().text("key", key).json("value", json));
  }

  void tell_about_run() {
    add_other("offline_experiment", "true");
    add_other("Name", json_quote(config_.run_name.value_or(fs::path(run_.dir).filename().string())));
    add_other("hasNestedParams", "true");
    for (auto& [name, value] : config_values(run_.config)) {
      std::string nested = name;
      std::replace(nested.begin(), nested.end(), '.', '|');
      const std::string param = JsonObject()
                                    .text("paramName", nested)
                                    .json("paramValue", runner::core::to_json(value, -1))
                                    .json("step", "null")
                                    .text("source", "manual")
                                    .str();
      add("parameter_msg", at(run_.created_ms).json("param", param));
    }
  }

  /// A file in the folder by that name shows under its own name.
  void add_upload(const std::string& file, const char* type, const std::string& shown, std::int64_t step,
                  std::int64_t time_ms) {
    const std::string more = JsonObject()
                                 .text("assetId", sha256(key_ + file).substr(0, kIdDigits))
                                 .json("context", "null")
                                 .text("fileName", one_line(shown))
                                 .text("extension", fs::path(file).extension().string().substr(1))
                                 .flag("overwrite", false)
                                 .json("runId", "null")
                                 .integer("step", step)
                                 .integer("figCounter", messages_ + 1)
                                 .str();
    add("file_upload", at(time_ms)
                           .text("file_path", file)
                           .text("upload_type", type)
                           .json("metadata", "{}")
                           .flag("clean", false)
                           .json("additional_params", more));
  }

  template <typename Thing>
  void add_file(const Thing& thing, const char* type, const char* extension, const std::string& content) {
    const std::string file = safe_name(thing.name) + "_" + std::to_string(thing.step) + extension;
    const auto written = runner::core::write_file_atomic(folder_ + "/" + file, content);
    if (!written) throw TrackerError(TrackerError::Remedy::kRetry, written.failure().message, written.failure().hint);
    add_upload(file, type, thing.name, thing.step, thing.time_ms);
  }

  void add_link(const Artifact& artifact, const fs::path& from, const std::string& shown) {
    std::string extension = from.extension().string();
    if (extension.size() < 2 || safe_name("x" + extension) != "x" + extension) extension = ".bin";
    const std::string file = safe_name(shown) + "_" + std::to_string(artifact.step) + extension;
    std::error_code error;
    fs::remove(folder_ + "/" + file, error);
    fs::create_symlink(fs::absolute(from), folder_ + "/" + file, error);
    if (error) throw TrackerError(TrackerError::Remedy::kReject, "cannot link " + file + ": " + error.message());
    add_upload(file, "asset", shown, artifact.step, artifact.time_ms);
  }

  const Config config_;
  const std::string name_;
  Run run_;
  std::string key_, folder_;
  std::optional<RecordFile> file_;
  std::int64_t messages_ = 0, last_ms_ = 0;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Comet>(config, inputs.name);
}

}  // namespace trackers::comet_ml
