#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "generated/tracker/dvclive.h"  // Config; declares make()
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/png.h"
#include "trackers/io/record_file.h"
#include "trackers/io/safe_name.h"
#include "trackers/tracker.h"

namespace trackers::dvclive {
namespace {

namespace fs = std::filesystem;
using runner::core::Node;

constexpr NumberWords kWords = {"nan", "inf", "-inf"};
constexpr const char* kOwner = ".run";  // whose files these are
constexpr std::int64_t kOwnerBytesMax = 1000;

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// `val/loss` lies in the folder `val`, when every part of the name can be one.
std::string path_of(const std::string& name) {
  std::string path;
  for (const std::string& part : parts_of(name)) {
    if (safe_name(part) != part) return safe_name(name);
    path += (path.empty() ? "" : "/") + part;
  }
  return path;
}

Node number_node(double value) {
  const std::string text = number_text(value, kWords);
  return std::isfinite(value) ? Node::floating(value) : Node::string(text);
}

/// `val/loss` becomes `{val: {loss: ...}}`; whole where something else has the place of one of its parts.
void put_nested(Node& root, const std::string& name, const Node& value) {
  std::vector<std::string> parts = parts_of(name);
  Node* at = &root;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    Node* next = at->find(parts[i]);
    if (parts[i].empty() || (next != nullptr && !next->is_mapping())) at = nullptr;
    if (at == nullptr) break;
    at = next != nullptr ? next : &at->set(parts[i], Node::mapping());
  }
  if (at == nullptr || parts.back().empty() || at->find(parts.back()) != nullptr) {
    root.set(name, value);
  } else {
    at->set(parts.back(), value);
  }
}

/// A metric's file. Open only while writing: a run may have more metrics than a process has file descriptors.
struct Series {
  std::int64_t bytes = 0;  // that were flushed
  std::string unwritten;
  double last = 0;
};

class DvcLive final : public Tracker {
 public:
  DvcLive(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    folder_ = fs::absolute(config_.dir.value_or(run.dir + "/" + name_)).string();
    series_.clear();
    plots_ = Node::mapping();
    last_step_ = 0;
    has_images_ = false;
    written_index_.clear();
    if (state.is_mapping()) {
      go_on(run, state);
    } else {
      begin(run);
    }
  }

  bool restarts_after_rewind() const override { return true; }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      Series& series = series_[*point.name];
      if (series.bytes == 0 && series.unwritten.empty()) {
        series.unwritten = "step\t" + runner::core::csv_field(parts_of(*point.name).back(), '\t') + "\n";
      }
      series.unwritten += std::to_string(point.step) + "\t" + number_text(point.value, kWords) + "\n";
      series.last = point.value;
      last_step_ = std::max(last_step_, point.step);
    }
  }

  void log_image(const Image& image) override {
    write("plots/images/" + path_of(image.name) + "/" + std::to_string(image.step) + ".png",
          read_png(image.path).bytes);
    has_images_ = true;
  }

  void log_table(const Table& table) override {
    if (table.columns.size() < 2) {
      throw TrackerError(TrackerError::Remedy::kReject, "a table needs two columns to be plotted");
    }
    Node rows = Node::sequence(), plot = Node::mapping();
    for (const auto& cells : table.rows) {
      Node row = Node::mapping();
      for (std::size_t i = 0; i < cells.size(); ++i) row.set(table.columns[i], cells[i]);
      rows.items().push_back(std::move(row));
    }
    const std::string path = "plots/custom/" + safe_name(table.name) + ".json";
    write(path, runner::core::to_json(rows));
    plot.set("x", Node::string(table.columns[0]));
    plot.set("y", Node::string(table.columns[1]));
    plot.set("template", Node::string("linear"));
    plot.set("title", Node::string(table.name));
    plots_.set(path, std::move(plot));
  }

  void flush(bool durable) override {
    for (auto& [name, series] : series_) {
      if (series.unwritten.empty()) continue;
      flush(series, "plots/metrics/" + path_of(name) + ".tsv", durable);
    }
    Node metrics = Node::mapping();
    metrics.set("step", Node::integer(last_step_));
    for (const auto& [name, series] : series_) put_nested(metrics, name, number_node(series.last));
    write("metrics.json", runner::core::to_json(metrics, 4) + "\n");
    write_index();
  }

  Node state() const override {
    Node state = Node::mapping(), all = Node::mapping();
    for (const auto& [name, series] : series_) {
      Node one = Node::mapping();
      one.set("bytes", Node::integer(series.bytes));
      one.set("last", number_node(series.last));
      all.set(name, std::move(one));
    }
    state.set("series", std::move(all));
    state.set("plots", plots_);
    state.set("images", Node::boolean(has_images_));
    state.set("step", Node::integer(last_step_));
    return state;
  }

 private:
  /// Deletes leftovers of an earlier run, first the file that names the others. Never a user's own files: `dir: .` in a
  /// DVC project names its dvc.yaml and params.yaml.
  void begin(const Run& run) {
    std::error_code ignored;
    for (const char* path : {"dvc.yaml", "params.yaml", "metrics.json", "plots"}) {
      if (fs::exists(folder_ + "/" + kOwner, ignored) || !fs::exists(folder_ + "/" + path, ignored)) continue;
      throw TrackerError(TrackerError::Remedy::kPause, folder_ + " has a " + path + " that roux did not write",
                         "use another `dir`, or move that away");
    }
    for (const char* path : {"dvc.yaml", "metrics.json", "plots/metrics", "plots/images", "plots/custom"}) {
      fs::remove_all(folder_ + "/" + path, ignored);
    }
    write(kOwner, run.id + "\n");
    write("params.yaml", runner::core::to_yaml(run.config));
  }

  void go_on(const Run& run, const Node& state) {
    const auto owner = runner::core::read_file(folder_ + "/" + kOwner, kOwnerBytesMax);
    if (!owner || owner.value() != run.id + "\n") {
      throw TrackerError(TrackerError::Remedy::kPause,
                         folder_ + (owner ? " has been taken over by another run" : " no longer exists"),
                         "give each run its own `dir`");
    }
    for (const auto& entry : state.find("series")->entries()) {
      Series& series = series_[entry.key];
      const Node& last = *entry.value.find("last");
      series.bytes = entry.value.find("bytes")->as_integer();
      series.last = last.is_number() ? last.as_double() : std::strtod(last.as_string().c_str(), nullptr);
      // A torn row would be read as another value.
      RecordFile(folder_ + "/plots/metrics/" + path_of(entry.key) + ".tsv", series.bytes);
    }
    plots_ = *state.find("plots");
    has_images_ = state.find("images")->as_bool();
    last_step_ = state.find("step")->as_integer();
  }

  void flush(Series& series, const std::string& path, bool durable) const {
    if (series.bytes == 0) {
      write(path, series.unwritten);  // dvc refuses a file that has no header yet
      series.bytes = static_cast<std::int64_t>(series.unwritten.size());
    } else {
      RecordFile file(folder_ + "/" + path, series.bytes);
      file.append(series.unwritten);
      file.flush(durable);
      series.bytes = file.bytes();
    }
    series.unwritten.clear();
  }

  /// dvc refuses an entry that names nothing.
  void write_index() {
    Node index = Node::mapping(), plots = Node::sequence();
    index.set("params", Node::sequence({Node::string("params.yaml")}));
    index.set("metrics", Node::sequence({Node::string("metrics.json")}));
    if (!series_.empty()) {
      Node axis = Node::mapping(), all = Node::mapping();
      axis.set("x", Node::string("step"));
      all.set("plots/metrics", std::move(axis));
      plots.items().push_back(std::move(all));
    }
    if (has_images_) plots.items().push_back(Node::string("plots/images"));
    for (const auto& entry : plots_.entries()) {
      Node plot = Node::mapping();
      plot.set(entry.key, entry.value);
      plots.items().push_back(std::move(plot));
    }
    if (!plots.items().empty()) index.set("plots", std::move(plots));
    const std::string text = runner::core::to_yaml(index);
    if (std::exchange(written_index_, text) != text) write("dvc.yaml", text);
  }

  void write(const std::string& path, const std::string& content) const {
    const fs::path whole = fs::path(folder_) / path;
    runner::core::make_folders(whole.parent_path().string()).value();
    const auto written = runner::core::write_file_atomic(whole.string(), content);
    if (!written) throw TrackerError(TrackerError::Remedy::kRetry, written.failure().message, written.failure().hint);
  }

  const Config config_;
  const std::string name_;
  std::string folder_;
  std::map<std::string, Series> series_;
  Node plots_;  // of tables: path and how it is drawn
  std::int64_t last_step_ = 0;
  bool has_images_ = false;
  std::string written_index_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<DvcLive>(config, inputs.name);
}

}  // namespace trackers::dvclive
