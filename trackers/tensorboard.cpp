// Formats: tensorflow's event.proto, summary.proto, tensor.proto, and the plugins' own; field numbers as there.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "generated/tracker/tensorboard.h"  // Config; declares make()
#include "runner/core/clock.h"
#include "runner/core/platform/machine.h"
#include "trackers/io/config_values.h"
#include "trackers/io/crc32c.h"
#include "trackers/io/png.h"
#include "trackers/io/record_file.h"
#include "trackers/io/wire.h"
#include "trackers/tracker.h"

namespace trackers::tensorboard {
namespace {

using runner::core::Node;

constexpr int kSessionStart = 1;
constexpr std::string_view kFile = "events.out.tfevents.";
enum DataType { kFloat = 1, kString = 7 };
enum DataClass { kTensor = 2 };
enum SessionStatus { kSuccess = 1, kFailure = 2, kRunning = 3 };

template <typename Number>
void append(std::string& bytes, Number value) {
  const auto raw = std::bit_cast<std::array<char, sizeof value>>(value);  // this machine is little-endian, as the file
  bytes.append(raw.data(), raw.size());
}

/// length, its checksum, the message, its checksum.
std::string framed(const std::string& message) {
  std::string record;
  record.reserve(message.size() + 16);
  append(record, static_cast<std::uint64_t>(message.size()));
  append(record, masked_crc32c(record));
  record += message;
  append(record, masked_crc32c(message));
  return record;
}

Wire event(double wall_time, std::int64_t step) {
  Wire wire;
  wire.real(1, wall_time);
  if (step != 0) wire.integer(2, step);
  return wire;
}

Wire metadata(std::string_view plugin, std::string_view content = "", int data_class = 0) {
  Wire data;
  data.text(1, plugin);
  if (!content.empty()) data.text(2, content);
  Wire wire;
  wire.message(1, data);
  if (data_class != 0) wire.integer(4, data_class);
  return wire;
}

/// One dimension of `count` texts; a tensor of no elements where there is none.
Wire tensor_of(DataType type, std::int64_t count, const std::string* text = nullptr) {
  Wire dim;
  dim.integer(1, count);
  Wire shape, tensor;
  shape.message(2, dim);
  tensor.integer(1, type).message(2, shape);
  if (text != nullptr) tensor.text(8, *text);
  return tensor;
}

Wire summary_of(const Wire& value) {
  Wire summary;
  summary.message(1, value);
  return summary;
}

/// A bar or the end of a line would end a cell.
std::string cell(const Node& value) {
  std::string text;
  for (const char c : value.scalar_text()) {
    if (c == '|') text += '\\';
    text += c == '\n' || c == '\r' ? ' ' : c;
  }
  return " " + text + " |";
}

std::string markdown(const Table& table) {
  std::string head = "|", rule = "|", body;
  for (const std::string& column : table.columns) {
    head += cell(Node::string(column));
    rule += " --- |";
  }
  for (const auto& row : table.rows) {
    body += "\n|";
    for (const Node& value : row) body += cell(value);
  }
  return head + "\n" + rule + body;
}

double seconds(std::int64_t time_ms) { return static_cast<double>(time_ms) * 1e-3; }

class TensorBoard final : public Tracker {
 public:
  TensorBoard(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  // TensorBoard stops at a torn record, and reads a second file after the first: each start has its own file, which
  // begins where the flushed part of the previous one ends.
  void start(const Run& run, const Node& state) override {
    const std::string folder = !config_.logging_dir
                                   ? run.dir + "/" + name_
                                   : *config_.logging_dir + "/" + std::filesystem::path(run.dir).filename().string();
    const std::int64_t now_ms = runner::core::system_clock().wall_ms();
    std::int64_t number = 0, second = now_ms / 1000;
    if (state.is_mapping()) {
      const std::string before = state.find("file")->as_string();
      RecordFile(folder + "/" + before, state.find("bytes")->as_integer());
      second = std::max(second, second_of(before) + 1);
      number = state.find("number")->as_integer() + 1;
      remove_younger(folder, number);
    } else {
      remove_younger(folder, 0);
    }
    open(folder + "/" + file_name(number, second), number, now_ms);
    if (state.is_mapping()) return;
    tell_config(run, now_ms);
  }

  // A file that says where its session starts makes older points of later steps disappear.
  void rewind(std::int64_t step) override {
    Wire log;
    log.integer(1, kSessionStart);
    add(event(seconds(runner::core::system_clock().wall_ms()), step + 1).message(7, log));
  }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      Wire value;
      value.text(1, *point.name).real32(2, static_cast<float>(point.value));
      add(event(seconds(point.time_ms), point.step).message(5, summary_of(value)));
    }
  }

  void log_text(const Text& text) override {
    Wire value;
    value.text(1, text.name + "/text_summary")
        .message(8, tensor_of(kString, 1, &text.text))
        .message(9, metadata("text"));
    add(event(seconds(text.time_ms), text.step).message(5, summary_of(value)));
  }

  void log_histogram(const Histogram& histogram) override {
    const auto bins = static_cast<double>(histogram.counts.size());
    std::vector<double> limits;
    double number = 0, sum = 0, squares = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      const double width = (histogram.most - histogram.least) / bins;
      const double middle = histogram.least + (static_cast<double>(i) + 0.5) * width;
      limits.push_back(i + 1 == histogram.counts.size() ? histogram.most
                                                        : histogram.least + static_cast<double>(i + 1) * width);
      number += histogram.counts[i];
      sum += histogram.counts[i] * middle;
      squares += histogram.counts[i] * middle * middle;
    }
    Wire counted, value;
    counted.real(1, histogram.least).real(2, histogram.most).real(3, number).real(4, sum).real(5, squares);
    counted.packed_reals(6, limits).packed_reals(7, histogram.counts);
    value.text(1, histogram.name).message(5, counted);
    add(event(seconds(histogram.time_ms), histogram.step).message(5, summary_of(value)));
  }

  void log_image(const Image& image) override {
    const Png png = read_png(image.path);
    Wire encoded, value;
    encoded.integer(1, png.height).integer(2, png.width).integer(3, png.channels).text(4, png.bytes);
    value.text(1, image.name).message(4, encoded);
    add(event(seconds(image.time_ms), image.step).message(5, summary_of(value)));
  }

  void log_table(const Table& table) override { log_text({table.name, markdown(table), table.step, table.time_ms}); }

  void flush(bool durable) override { file_->flush(durable); }

  Node state() const override {
    Node state = Node::mapping();
    state.set("file", Node::string(std::filesystem::path(file_->path()).filename().string()));
    state.set("bytes", Node::integer(file_->bytes()));
    state.set("number", Node::integer(number_));
    return state;
  }

  void finish(const End& run) override {
    if (run.ending != Ending::kFinished && run.ending != Ending::kFailed) return;
    const double now = seconds(runner::core::system_clock().wall_ms());
    Wire end, data;
    end.integer(1, run.ending == Ending::kFinished ? kSuccess : kFailure).real(2, now);
    data.message(4, end);
    hparams("_hparams_/session_end_info", data, now);
    file_->flush(true);
  }

 private:
  /// TensorBoard reads the files by their names: in the second, the later file has the larger one, since the number of
  /// the process, which comes next, may be the smaller one.
  static std::string file_name(std::int64_t number, std::int64_t second) {
    return std::string(kFile) + std::to_string(second) + "." + runner::core::host_name() + "." +
           std::to_string(getpid()) + "." + std::to_string(number);
  }
  static std::int64_t second_of(const std::string& file) {
    return file.starts_with(kFile) ? std::strtoll(file.c_str() + kFile.size(), nullptr, 10) : 0;
  }

  /// Files left by a crash after the last flush: their points are repeated.
  static void remove_younger(const std::string& folder, std::int64_t number) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.find("tfevents") == std::string::npos) continue;
      const std::string last = name.substr(name.rfind('.') + 1);
      if (last.empty() || last.find_first_not_of("0123456789") != std::string::npos) continue;
      if (std::stoll(last) >= number) std::filesystem::remove(entry.path(), ignored);
    }
  }

  void open(const std::string& path, std::int64_t number, std::int64_t now_ms) {
    number_ = number;
    file_.emplace(path, 0);
    add(event(seconds(now_ms), 0).text(3, "brain.Event:2"));
  }

  void add(const Wire& event) { file_->append(framed(event.bytes())); }

  void hparams(std::string_view tag, const Wire& data, double wall_time) {
    Wire value;
    value.text(1, tag).message(8, tensor_of(kFloat, 0)).message(9, metadata("hparams", data.bytes()));
    add(event(wall_time, 0).message(5, summary_of(value)));
  }

  void tell_config(const Run& run, std::int64_t now_ms) {
    const double now = seconds(now_ms);
    Wire experiment, start;
    experiment.text(1, "").real(3, now);
    for (const auto& [name, value] : config_values(run.config)) {
      Wire info, held, entry;
      info.text(1, name);
      if (value.is_bool()) {
        info.integer(4, 2);
        held.integer(4, value.as_bool() ? 1 : 0);
      } else if (value.is_number()) {
        info.integer(4, 3);
        held.real(2, value.as_double());
      } else {
        info.integer(4, 1);
        held.text(3, value.scalar_text());
      }
      experiment.message(4, info);
      entry.text(1, name).message(2, held);
      start.message(1, entry);
    }
    start.text(4, run.id).real(5, seconds(run.created_ms));
    Wire about, begun;
    about.message(2, experiment);
    begun.message(3, start);
    hparams("_hparams_/experiment", about, now);
    hparams("_hparams_/session_start_info", begun, now);
  }

  const Config config_;
  const std::string name_;
  std::int64_t number_ = 0;
  std::optional<RecordFile> file_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<TensorBoard>(config, inputs.name);
}

}  // namespace trackers::tensorboard
