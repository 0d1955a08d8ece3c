#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "generated/tracker/plugin.h"  // Config; declares make()
#include "trackers/plugin_library.h"
#include "trackers/plugin_program.h"
#include "trackers/tracker.h"

namespace trackers::plugin {
namespace {

using runner::core::Node;

std::unique_ptr<Tracker> opened(const Config& config) {
  Node options = Node::mapping();
  for (const auto& [key, value] : config.options) options.set(key, value);
  const std::string text = runner::core::to_json(options, -1);
  if (config.path) return open_plugin_library(*config.path, text);
  return start_plugin_program({*config.command, text, config.acknowledges, std::llround(config.answer_timeout * 1000)});
}

/// Opens the plugin when the run starts to be sent, so that its errors belong to this tracker.
class Plugin final : public Tracker {
 public:
  explicit Plugin(Config config) : config_(std::move(config)) {}

  void start(const Run& run, const Node& state) override {
    if (!to_) to_ = opened(config_);
    to_->start(run, state);
  }
  void rewind(std::int64_t step) override { to_->rewind(step); }
  void log(std::span<const Point> points) override { to_->log(points); }
  void log_text(const Text& text) override { to_->log_text(text); }
  void log_histogram(const Histogram& histogram) override { to_->log_histogram(histogram); }
  void log_image(const Image& image) override { to_->log_image(image); }
  void log_table(const Table& table) override { to_->log_table(table); }
  void log_artifact(const Artifact& artifact) override { to_->log_artifact(artifact); }
  void flush(bool durable) override { to_->flush(durable); }
  Node state() const override { return to_->state(); }
  void finish(const End& end) override { to_->finish(end); }

 private:
  const Config config_;
  std::unique_ptr<Tracker> to_;
};

}  // namespace

std::shared_ptr<Tracker> make(const Config& config, const Inputs&) { return std::make_shared<Plugin>(config); }

}  // namespace trackers::plugin
