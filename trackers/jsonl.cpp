#include <optional>
#include <string>
#include <utility>

#include "generated/tracker/jsonl.h"  // Config; declares make()
#include "trackers/io/json_lines.h"
#include "trackers/io/record_file.h"
#include "trackers/tracker.h"

namespace trackers::jsonl {
namespace {

using json_lines::line;
using runner::core::Node;

class Jsonl final : public Tracker {
 public:
  Jsonl(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    const Node* bytes = state.is_mapping() ? state.find("bytes") : nullptr;
    const std::string own = run.dir + "/" + (name_ == "jsonl" ? "metrics" : name_) + ".jsonl";
    const std::string path = config_.path.value_or(own);
    const std::int64_t keep_bytes = bytes != nullptr ? bytes->as_integer() : 0;
    claim_file(path, {json_lines::kStart, run.id, "\""}, keep_bytes);
    file_.emplace(path, keep_bytes);
    if (file_->bytes() > 0) return;
    file_->append(json_lines::start(run));
    file_->flush(false);  // mark the owner before another run looks
  }

  void rewind(std::int64_t step) override { file_->append(json_lines::rewind(step)); }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) file_->append(line(point));
  }
  void log_text(const Text& text) override { file_->append(line(text)); }
  void log_histogram(const Histogram& histogram) override { file_->append(line(histogram)); }
  void log_image(const Image& image) override { file_->append(line(image)); }
  void log_table(const Table& table) override { file_->append(line(table)); }
  void log_artifact(const Artifact& artifact) override { file_->append(line(artifact)); }
  void log_console(std::span<const ConsoleLine> lines) override {
    for (const ConsoleLine& console : lines) file_->append(line(console));
  }

  void finish(const End& end) override {
    if (end.ending == Ending::kOpen) return;
    file_->append(line(end));
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
  const std::string name_;
  std::optional<RecordFile> file_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Jsonl>(config, inputs.name);
}

}  // namespace trackers::jsonl
