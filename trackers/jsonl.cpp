#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "generated/tracker/jsonl.h"  // Config; declares make()
#include "trackers/numbers.h"
#include "trackers/record_file.h"
#include "trackers/tracker.h"

namespace trackers::jsonl {
namespace {

using runner::core::Node;

constexpr NumberWords kWords = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string seconds(std::int64_t time_ms) {
  return std::to_string(time_ms / 1000) + "." + std::to_string(1000 + time_ms % 1000).substr(1);
}

class Jsonl final : public Tracker {
 public:
  explicit Jsonl(Config config) : config_(std::move(config)) {}

  void start(const Run& run, const Node& state) override {
    const Node* bytes = state.is_mapping() ? state.find("bytes") : nullptr;
    const std::string path = config_.path.value_or(run.dir + "/metrics.jsonl");
    file_.emplace(path, bytes != nullptr ? bytes->as_integer() : 0);
    if (file_->bytes() > 0) return;
    file_->append(R"({"type":"start","run":)" + quoted(run.id) + R"(,"name":)" + quoted(run.name) + R"(,"config":)" +
                  runner::core::to_json(run.config, -1) + "}\n");
  }

  void rewind(std::int64_t step) override {
    file_->append(R"({"type":"rewind","step":)" + std::to_string(step) + "}\n");
  }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      file_->append(R"({"type":"metric","name":)" + quoted(*point.name) + R"(,"step":)" + std::to_string(point.step) +
                    R"(,"time":)" + seconds(point.time_ms) + R"(,"value":)" + number_text(point.value, kWords) + "}\n");
    }
  }

  void log_text(const Text& text) override {
    file_->append(R"({"type":"text","name":)" + quoted(text.name) + R"(,"step":)" + std::to_string(text.step) +
                  R"(,"time":)" + seconds(text.time_ms) + R"(,"text":)" + quoted(text.text) + "}\n");
  }

  void log_histogram(const Histogram& histogram) override {
    std::string counts;
    for (const double count : histogram.counts) counts += (counts.empty() ? "" : ",") + number_text(count, kWords);
    file_->append(R"({"type":"histogram","name":)" + quoted(histogram.name) + R"(,"step":)" +
                  std::to_string(histogram.step) + R"(,"time":)" + seconds(histogram.time_ms) + R"(,"least":)" +
                  number_text(histogram.least, kWords) + R"(,"most":)" + number_text(histogram.most, kWords) +
                  R"(,"counts":[)" + counts + "]}\n");
  }

  void flush(bool durable) override { file_->flush(durable); }

  Node state() const override {
    Node state = Node::mapping();
    state.set("bytes", Node::integer(file_->bytes()));
    return state;
  }

 private:
  const Config config_;
  std::optional<RecordFile> file_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs&) { return std::make_shared<Jsonl>(config); }

}  // namespace trackers::jsonl
