#include <optional>
#include <string>
#include <utility>

#include "generated/tracker/csv.h"  // Config; declares make()
#include "runner/core/text/text.h"
#include "trackers/io/numbers.h"
#include "trackers/io/record_file.h"
#include "trackers/tracker.h"

namespace trackers::csv {
namespace {

using runner::core::Node;

constexpr NumberWords kWords = {"nan", "inf", "-inf"};
constexpr const char* kHeader = "run,metric,step,wall_time,value\r\n";

class Csv final : public Tracker {
 public:
  Csv(Config config, std::string name) : config_(std::move(config)), name_(std::move(name)) {}

  void start(const Run& run, const Node& state) override {
    run_id_ = runner::core::csv_field(run.id, ',');
    const Node* bytes = state.is_mapping() ? state.find("bytes") : nullptr;
    const std::string own = run.dir + "/" + (name_ == "csv" ? "metrics" : name_) + ".csv";
    const std::string path = config_.path.value_or(own);
    const std::int64_t keep_bytes = bytes != nullptr ? bytes->as_integer() : 0;
    claim_file(path, {kHeader, run_id_, ","}, keep_bytes);
    file_.emplace(path, keep_bytes);
    if (file_->bytes() > 0) return;
    file_->append(kHeader);
    file_->flush(false);  // mark the owner before another run looks
  }

  void log(std::span<const Point> points) override {
    for (const Point& point : points) {
      file_->append(run_id_ + "," + runner::core::csv_field(*point.name, ',') + "," + std::to_string(point.step) + "," +
                    seconds_text(point.time_ms) + "," + number_text(point.value, kWords) + "\r\n");
    }
  }

  bool restarts_after_rewind() const override { return true; }

  void flush(bool durable) override { file_->flush(durable); }

  Node state() const override {
    Node state = Node::mapping();
    state.set("bytes", Node::integer(file_->bytes()));
    return state;
  }

 private:
  const Config config_;
  const std::string name_;
  std::string run_id_;
  std::optional<RecordFile> file_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs& inputs) {
  return std::make_shared<Csv>(config, inputs.name);
}

}  // namespace trackers::csv
