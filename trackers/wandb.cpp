// Messages: wandb's wandb_internal.proto; field numbers as there.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generated/tracker/wandb.h"  // Config; declares make()
#include "runner/core/clock.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/net/digest.h"
#include "runner/net/environment.h"
#include "trackers/io/artifact_files.h"
#include "trackers/io/json_text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/png.h"
#include "trackers/io/safe_name.h"
#include "trackers/io/wire.h"
#include "trackers/tracker.h"
#include "trackers/wandb_file.h"

namespace trackers::wandb {
namespace {

using runner::net::environment;
using runner::net::sha256;

namespace fs = std::filesystem;
using runner::core::json_quote;
using runner::core::Node;

constexpr NumberWords kWords = {"NaN", "Infinity", "-Infinity"};
constexpr const char *kProducer = "0.31.0", *kConsumerMin = "0.70.0";
constexpr std::size_t kDigestDigits = 20;
constexpr const char *kFolder = "offline-run-", *kOwner = ".tracker";
constexpr std::int64_t kOwnerBytesMax = 1000;
constexpr std::string_view kOfMachine = "system/";

// Fields of a Record: what it is.
enum Kind {
  kHistory = 2,
  kSummary = 3,
  kFiles = 6,
  kStats = 7,
  kOutput = 13,
  kRun = 17,
  kExit = 18,
  kHeader = 21,
};
enum FileType { kOther = 0, kMedia = 2 };

std::string concatenated(std::initializer_list<std::string> parts) { return runner::core::joined(parts, ""); }

Wire timestamp(std::int64_t time_ms) {
  Wire wire;
  wire.integer(1, time_ms / 1000).integer(2, time_ms % 1000 * 1'000'000);
  return wire;
}

/// A key and its value, where a dot or a slash in the key means nothing.
Wire item(const std::string& key, const std::string& json) {
  Wire wire;
  wire.text(2, key).text(16, json);
  return wire;
}

/// `20261122_080500`, as the names of offline runs have it.
std::string time_text(std::int64_t time_ms) {
  const std::time_t seconds = time_ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d_%H%M%S", &parts);
  return text;
}

int exit_code_of(Ending ending) {
  switch (ending) {
    case Ending::kFinished: return runner::core::kExitDone;
    case Ending::kStopped: return runner::core::kExitResumable;
    default: return runner::core::kExitFailed;
  }
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// What W&B shows at one step.
struct Row {
  std::int64_t step = 0, time_ms = 0;
  std::map<std::string, std::string> items;  // value as JSON
};

class Wandb final : public Tracker {
 public:
  Wandb(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    run_ = run;
    file_.reset();
    row_.reset();
    changed_.clear();
    const auto dir = given(config_.dir, "WANDB_DIR");
    root_ = fs::absolute(dir ? *dir + "/wandb" : run.dir + "/" + name_).string();
    id_ = given(config_.id, "WANDB_RUN_ID").value_or(run.id);
    if (state.is_mapping()) {
      go_on(state);
    } else {
      begin();
    }
    remove_forgotten();
  }

  // A file cannot be rewound: it is rewritten, and the upload replaces everything from its first line on.
  bool restarts_after_rewind() const override { return true; }

  void log(std::span<const Point> points) override {
    std::map<std::int64_t, Row> rows;
    for (const Point& point : points) {
      const std::string value = number_text(point.value, kWords);
      if (point.is_system_metric) {
        add_statistic(point, value);
        continue;
      }
      Row& row = rows[point.step];
      row.step = point.step;
      row.time_ms = std::max(row.time_ms, point.time_ms);
      row.items[*point.name] = value;
    }
    for (auto& [step, row] : rows) {
      if (!is_late(step)) {
        put(std::move(row));
      } else if (!std::exchange(told_late_, true)) {
        runner::core::log_warning("tracker " + name_ + ": " + late(step) + "; its points are skipped");
      }
    }
  }

  void log_text(const Text& text) override { put(text, json_quote(text.text)); }

  void log_histogram(const Histogram& histogram) override {
    const auto bins = static_cast<double>(histogram.counts.size());
    std::string values, edges = number_text(histogram.least, kWords);
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      values += (i == 0 ? "" : ",") + number_text(histogram.counts[i], kWords);
      const double width = (histogram.most - histogram.least) / bins;
      edges += "," + number_text(histogram.least + static_cast<double>(i + 1) * width, kWords);
    }
    put(histogram, R"({"_type":"histogram","values":[)" + values + R"(],"bins":[)" + edges + "]}");
  }

  void log_image(const Image& image) override {
    const Png png = read_png(image.path);
    const std::string path = add_media("images", image, png.bytes, ".png");
    put(image, concatenated({R"({"_type":"images/separated","width":)", std::to_string(png.width), R"(,"height":)",
                             std::to_string(png.height), R"(,"format":"png","count":1,"filenames":[)", json_quote(path),
                             R"(],"captions":[)", json_quote(image.caption), "]}"}));
  }

  void log_table(const Table& table) override {
    const std::string content = json_text(table);
    const std::string path = add_media("table", table, content, ".table.json");
    put(table, concatenated({R"({"_type":"table-file","ncols":)", std::to_string(table.columns.size()), R"(,"nrows":)",
                             std::to_string(table.rows.size()), R"(,"sha256":")", sha256(content), R"(","size":)",
                             std::to_string(content.size()), R"(,"path":)", json_quote(path), "}"}));
  }

  // As wandb.save() does it: a link to where it lies.
  void log_artifact(const Artifact& artifact) override {
    if (artifact.kind == "checkpoint" && !config_.log_checkpoints) return;
    for (const ArtifactFile& file : artifact_files(artifact, config_.artifact_size_limit)) {
      add_link(file.path, safe_name(artifact.name) + (file.below.empty() ? "" : "/" + file.below));
    }
  }

  void log_console(std::span<const ConsoleLine> lines) override {
    for (const ConsoleLine& line : lines) {
      Wire output;
      output.integer(1, line.is_error ? 0 : 1).message(2, timestamp(line.time_ms)).text(3, line.text + "\n");
      add(kOutput, output);
    }
  }

  // The newest row waits for the rest of its step: steps must increase. It is in state() until then.
  void flush(bool durable) override {
    if (!changed_.empty()) {
      Wire summary;
      for (const auto& [key, json] : changed_) summary.message(1, item(key, json));
      add(kSummary, summary);
      changed_.clear();
    }
    if (file_) file_->flush(durable);
  }

  Node state() const override {
    Node state = Node::mapping(), folders = Node::sequence();
    for (const std::string& folder : folders_) {
      folders.items().push_back(Node::string(fs::path(folder).filename().string()));  // a run may be moved or copied
    }
    state.set("folders", std::move(folders));
    state.set("bytes", Node::integer(file_ ? file_->bytes() : 0));
    state.set("records", Node::integer(records_));
    state.set("last_step", Node::integer(last_step_));
    state.set("closed", Node::boolean(!file_));
    if (!row_) return state;
    Node items = Node::mapping(), row = Node::mapping();
    for (const auto& [key, json] : row_->items) items.set(key, Node::string(json));
    row.set("step", Node::integer(row_->step));
    row.set("time_ms", Node::integer(row_->time_ms));
    row.set("items", std::move(items));
    state.set("row", std::move(row));
    return state;
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    if (row_) write(*std::exchange(row_, std::nullopt));
    for (const auto& entry : end.summary.entries()) {
      changed_[entry.key] = entry.value.is_number() ? number_text(entry.value.as_double(), kWords)
                                                    : runner::core::to_json(entry.value, -1);
    }
    flush(false);
    const std::int64_t time_ms = end.time_ms > 0 ? end.time_ms : runner::core::system_clock().wall_ms();
    Wire exit;
    exit.integer(1, exit_code_of(end.ending)).integer(2, (time_ms - run_.created_ms) / 1000);
    add(kExit, exit);
    file_->flush(true);
    file_.reset();
  }

 private:
  static std::string file_of(const std::string& folder) {
    const std::string name = fs::path(folder).filename().string();  // offline-run-20261122_080500-ID
    return folder + "/run-" + name.substr(name.find('-', std::string_view(kFolder).size()) + 1) + ".wandb";
  }

  static bool is_uploaded(const std::string& folder) {
    std::error_code ignored;
    return fs::exists(file_of(folder) + ".synced", ignored);
  }

  void begin() {
    std::erase_if(folders_, [this](const std::string& folder) {
      if (is_uploaded(folder)) return false;
      remove(folder);
      return true;
    });
    resumes_ = false;
    last_step_ = -1;
  }

  void go_on(const Node& state) {
    folders_.clear();
    for (const Node& folder : state.find("folders")->items()) {
      folders_.push_back(root_ + "/" + fs::path(folder.as_string()).filename().string());
    }
    if (const Node* row = state.find("row")) {
      row_.emplace(Row{row->find("step")->as_integer(), row->find("time_ms")->as_integer(), {}});
      for (const auto& entry : row->find("items")->entries()) row_->items[entry.key] = entry.value.as_string();
    }
    last_step_ = state.find("last_step")->as_integer();
    resumes_ = !folders_.empty();
    if (folders_.empty() || state.find("closed")->as_bool()) return;
    const std::string file = file_of(folders_.back());
    std::error_code ignored;
    if (!fs::exists(file, ignored) || is_uploaded(folders_.back())) return;
    file_.emplace(file, state.find("bytes")->as_integer());
    records_ = state.find("records")->as_integer();
  }

  /// One folder per uninterrupted run.
  void open() {
    // It is renamed with its owner in it: a crash in between leaves no orphaned folder.
    const std::string made = root_ + "/.new-" + name_ + "-" + id_;
    std::error_code error;
    fs::remove_all(made, error);
    runner::core::make_folders(made).value();
    runner::core::write_file_atomic(made + "/" + kOwner, owner()).value();
    std::string folder;
    for (std::int64_t time_ms = runner::core::system_clock().wall_ms();; time_ms += 1000) {
      folder = root_ + "/" + kFolder + time_text(time_ms) + "-" + id_;
      fs::rename(made, folder, error);
      if (!error) break;
      if (error != std::errc::directory_not_empty && error != std::errc::file_exists) {
        throw TrackerError(TrackerError::Remedy::kPause, "cannot create " + folder + ": " + error.message());
      }
    }
    folders_.push_back(folder);
    file_.emplace(file_of(folder), 0);
    records_ = 0;
    Wire version, header;
    version.text(1, kProducer).text(2, kConsumerMin);
    header.message(1, version);
    add(kHeader, header);
    add(kRun, run_record());
  }

  /// Two trackers of one run may share a folder.
  std::string owner() const { return run_.id + " " + name_ + "\n"; }

  /// In a temporary folder first: a crash in between leaves no folder without owner or records.
  void remove(const std::string& folder) const {
    std::error_code ignored;
    fs::remove_all(removed(), ignored);
    fs::rename(folder, removed(), ignored);
    fs::remove_all(removed(), ignored);
  }
  std::string removed() const { return root_ + "/.old-" + name_ + "-" + id_; }

  /// A folder made between the last flush and a crash is in no state: its content is repeated.
  void remove_forgotten() const {
    std::error_code ignored;
    fs::remove_all(removed(), ignored);
    for (const auto& entry : fs::directory_iterator(root_, ignored)) {
      const std::string folder = entry.path().string(), name = entry.path().filename().string();
      if (!name.starts_with(kFolder) || !name.ends_with("-" + id_) || is_uploaded(folder)) continue;
      if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) continue;
      const auto made_by = runner::core::read_file(folder + "/" + kOwner, kOwnerBytesMax);
      if (made_by && made_by.value() == owner()) remove(folder);
    }
  }

  Wire run_record() const {
    Wire config, wire;
    for (const auto& entry : run_.config.entries()) {
      if (!entry.value.is_null()) config.message(1, item(entry.key, runner::core::to_json(entry.value, -1)));
    }
    wire.text(1, id_).text(3, given(config_.project, "WANDB_PROJECT").value_or(run_.project)).message(4, config);
    const std::pair<int, std::optional<std::string>> texts[] = {
        {2, given(config_.entity, "WANDB_ENTITY")},
        {6, given(config_.group, "WANDB_RUN_GROUP")},
        {7, given(config_.job_type, "WANDB_JOB_TYPE")},
        {8, given(config_.run_name, "WANDB_NAME").value_or(fs::path(run_.dir).filename().string())},
        {9, given(config_.notes, "WANDB_NOTES")},
    };
    for (const auto& [field, text] : texts) {
      if (text) wire.text(field, *text);
    }
    std::vector<std::string> tags = config_.tags.empty() ? split(environment("WANDB_TAGS").value_or("")) : config_.tags;
    tags.insert(tags.end(), run_.tags.begin(), run_.tags.end());
    for (const std::string& tag : tags) wire.text(10, tag);
    wire.text(13, runner::core::host_name()).message(17, timestamp(run_.created_ms));
    if (resumes_) wire.integer(24, 1);
    return wire;
  }

  static std::optional<std::string> given(const std::optional<std::string>& value, const char* variable) {
    return value ? value : environment(variable);
  }

  void add(Kind kind, const Wire& content) {
    if (!file_) open();
    Wire record;
    record.integer(1, ++records_).message(kind, content);
    file_->append(record.bytes());
  }

  /// Whether a later step, or the rest of this one, is written: the upload would count it up to the next free step.
  bool is_late(std::int64_t step) const { return step < last_step_ || (step == last_step_ && !row_); }
  std::string late(std::int64_t step) const {
    return "W&B needs increasing steps, but step " + std::to_string(step) + " comes after step " +
           std::to_string(last_step_);
  }

  void put(Row row) {
    last_step_ = row.step;
    for (const auto& [key, json] : row.items) changed_[key] = json;
    if (row_ && row.step > row_->step) write(*std::exchange(row_, std::nullopt));
    if (!row_) row_.emplace(Row{row.step, 0, {}});
    row_->time_ms = std::max(row_->time_ms, row.time_ms);
    for (auto& [key, json] : row.items) row_->items[key] = std::move(json);
  }

  template <typename Thing>
  void put(const Thing& thing, std::string json) {
    if (is_late(thing.step)) throw TrackerError(TrackerError::Remedy::kReject, late(thing.step));
    put(Row{thing.step, thing.time_ms, {{thing.name, std::move(json)}}});
  }

  void write(const Row& row) {
    Wire history, step;
    for (const auto& [key, json] : row.items) history.message(1, item(key, json));
    history.message(1, item("_step", std::to_string(row.step)))
        .message(1, item("_timestamp", seconds_text(row.time_ms)))
        .message(1, item("_runtime", seconds_text(std::max<std::int64_t>(row.time_ms - run_.created_ms, 0))));
    step.integer(1, row.step);
    history.message(2, step);
    add(kHistory, history);
  }

  void add_statistic(const Point& point, const std::string& json) {
    std::string_view key = *point.name;
    if (key.starts_with(kOfMachine)) key.remove_prefix(kOfMachine.size());
    Wire value, statistics;
    value.text(1, key).text(16, json);
    statistics.message(2, timestamp(point.time_ms)).message(3, value);
    add(kStats, statistics);
  }

  void add_file(const std::string& path, FileType type) {
    Wire file, files;
    file.text(1, path);
    if (type != kOther) file.integer(3, type);
    files.message(1, file);
    add(kFiles, files);
  }

  /// Returns the path below `files`.
  template <typename Thing>
  std::string add_media(const char* folder, const Thing& thing, const std::string& content, const char* ending) {
    if (!file_) open();
    const std::string path =
        concatenated({"media/", folder, "/", safe_name(thing.name), "_", std::to_string(thing.step), "_",
                      sha256(content).substr(0, kDigestDigits), ending});
    const fs::path whole = fs::path(folders_.back()) / "files" / path;
    runner::core::make_folders(whole.parent_path().string()).value();
    runner::core::write_file_atomic(whole.string(), content).value();
    add_file(path, kMedia);
    return path;
  }

  void add_link(const fs::path& from, const std::string& path) {
    if (!file_) open();
    const fs::path whole = fs::path(folders_.back()) / "files" / path;
    runner::core::make_folders(whole.parent_path().string()).value();
    std::error_code error;
    fs::remove(whole, error);
    fs::create_symlink(fs::absolute(from), whole, error);
    if (error) {
      throw TrackerError(TrackerError::Remedy::kReject, "cannot link " + whole.string() + ": " + error.message());
    }
    add_file(path, kOther);
  }

  const Config config_;
  const std::string name_;
  Run run_;
  std::string root_, id_;
  std::vector<std::string> folders_;  // of the run, the newest last
  std::optional<WandbFile> file_;     // of the newest one, while it is open
  std::int64_t records_ = 0;
  bool resumes_ = false, told_late_ = false;
  std::int64_t last_step_ = -1;
  std::optional<Row> row_;
  std::map<std::string, std::string> changed_;  // since the last summary
};

/// Discards everything.
class Disabled final : public Tracker {
 public:
  void start(const Run&, const Node&) override {}
  void log(std::span<const Point>) override {}
  void flush(bool) override {}
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  const bool disabled = config.mode ? *config.mode == Mode::kDisabled : environment("WANDB_MODE") == "disabled";
  if (disabled) return std::make_shared<Disabled>();
  return std::make_shared<Wandb>(config, inputs.name);
}

}  // namespace trackers::wandb
