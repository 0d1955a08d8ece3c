#include <optional>
#include <string>

#include "generated/tracker/jsonl.h"  // Config; declares make()
#include "runner/core/utf8.h"
#include "trackers/json_text.h"
#include "trackers/numbers.h"
#include "trackers/record_file.h"
#include "trackers/tracker.h"

namespace trackers::jsonl {
namespace {

using runner::core::json_quote;
using runner::core::Node;

constexpr NumberWords kWords = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};

/// `{"type":"text","name":"sample","step":3,"time":1790000001.000`, to be gone on with.
template <typename Thing>
std::string begun(const char* type, const Thing& thing) {
  return std::string(R"({"type":")") + type + R"(","name":)" + json_quote(thing.name) + R"(,"step":)" +
         std::to_string(thing.step) + R"(,"time":)" + seconds_text(thing.time_ms);
}

class Jsonl final : public Tracker {
 public:
  explicit Jsonl(Config config) : config_(std::move(config)) {}

  void start(const Run& run, const Node& state) override {
    const Node* bytes = state.is_mapping() ? state.find("bytes") : nullptr;
    const std::string path = config_.path.value_or(run.dir + "/metrics.jsonl");
    file_.emplace(path, bytes != nullptr ? bytes->as_integer() : 0);
    if (file_->bytes() > 0) return;
    file_->append(R"({"type":"start","run":)" + json_quote(run.id) + R"(,"name":)" + json_quote(run.name) +
                  R"(,"config":)" + runner::core::to_json(run.config, -1) + "}\n");
  }

  void rewind(std::int64_t step) override {
    file_->append(R"({"type":"rewind","step":)" + std::to_string(step) + "}\n");
  }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      file_->append(R"({"type":"metric","name":)" + json_quote(*point.name) + R"(,"step":)" +
                    std::to_string(point.step) + R"(,"time":)" + seconds_text(point.time_ms) + R"(,"value":)" +
                    number_text(point.value, kWords) + "}\n");
    }
  }

  void log_text(const Text& text) override {
    file_->append(begun("text", text) + R"(,"text":)" + json_quote(text.text) + "}\n");
  }

  void log_histogram(const Histogram& histogram) override {
    std::string counts;
    for (const double count : histogram.counts) counts += (counts.empty() ? "" : ",") + number_text(count, kWords);
    file_->append(begun("histogram", histogram) + R"(,"least":)" + number_text(histogram.least, kWords) +
                  R"(,"most":)" + number_text(histogram.most, kWords) + R"(,"counts":[)" + counts + "]}\n");
  }

  void log_image(const Image& image) override {
    file_->append(begun("image", image) + R"(,"path":)" + json_quote(image.path) + R"(,"caption":)" +
                  json_quote(image.caption) + "}\n");
  }

  void log_table(const Table& table) override {
    file_->append(begun("table", table) + R"(,"table":)" + json_text(table) + "}\n");
  }

  void log_artifact(const Artifact& artifact) override {
    file_->append(begun("artifact", artifact) + R"(,"kind":)" + json_quote(artifact.kind) + R"(,"path":)" +
                  json_quote(artifact.path) + "}\n");
  }

  void log_console(std::span<const ConsoleLine> lines) override {
    for (const ConsoleLine& line : lines) {
      file_->append(std::string(R"({"type":"console","error":)") + (line.is_error ? "true" : "false") + R"(,"time":)" +
                    seconds_text(line.time_ms) + R"(,"text":)" + json_quote(line.text) + "}\n");
    }
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    file_->append(R"({"type":"end","ending":)" + json_quote(to_text(end.ending)) + R"(,"reason":)" +
                  json_quote(end.reason) + R"(,"time":)" + seconds_text(end.time_ms) + R"(,"summary":)" +
                  runner::core::to_json(end.summary, -1) + "}\n");
    file_->flush(true);
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
