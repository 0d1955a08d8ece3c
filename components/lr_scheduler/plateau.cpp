#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/lr_scheduler/lr_scheduler.h"
#include "generated/lr_scheduler/plateau.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/suggest.h"

namespace components::lr_scheduler::plateau {
namespace {

using runner::core::Node;

class Plateau final : public Scheduler {
 public:
  explicit Plateau(const Config& config) : config_(config) {}

  double factor(std::int64_t) const override { return factor_; }

  void on_evaluation(const std::function<const double*(const std::string&)>& metric) override {
    const double* value = metric(config_.monitor);
    if (value == nullptr) return;
    if (improves(*value)) {
      best_ = *value;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (cooldown_ > 0) {
      --cooldown_;
      bad_ = 0;
    }
    if (bad_ <= config_.patience) return;
    const double lower = std::max(factor_ * config_.factor, config_.min_lr_ratio);
    if (factor_ - lower > config_.eps) factor_ = lower;
    cooldown_ = config_.cooldown;
    bad_ = 0;
  }

  void save_state(runner::core::StateWriter& writer) const override {
    writer.value("monitor", Node::string(config_.monitor));
    writer.value("mode", Node::string(smaller_is_better() ? "min" : "max"));
    writer.value("best", best_ ? Node::floating(*best_) : Node::null());
    writer.value("evaluations_without", Node::integer(bad_));
    writer.value("cooldown", Node::integer(cooldown_));
    writer.value("factor", Node::floating(factor_));
  }

  void load_state(const runner::core::StateReader& reader) override {
    // A checkpoint of another schedule has no such state; its rate means nothing here.
    *this = Plateau(config_);
    if (!reader.has("monitor")) return;
    factor_ = reader.value("factor").as_double();
    // The best by another metric means nothing for this one.
    if (reader.value("monitor").as_string() != config_.monitor ||
        (reader.value("mode").as_string() == "min") != smaller_is_better()) {
      return;
    }
    const Node& best = reader.value("best");
    if (best.is_number()) best_ = best.as_double();
    bad_ = reader.value("evaluations_without").as_integer();
    cooldown_ = reader.value("cooldown").as_integer();
  }

 private:
  bool smaller_is_better() const { return config_.mode != Mode::kMax; }

  /// NaN is no improvement, and an infinite value is no baseline.
  bool improves(double value) const {
    if (!std::isfinite(value)) return false;
    if (!best_) return true;
    const double sign = smaller_is_better() ? -1.0 : 1.0;
    const bool relative = config_.threshold_mode == ThresholdMode::kRel;
    const double bar = relative ? *best_ * (1.0 + sign * config_.threshold) : *best_ + sign * config_.threshold;
    return smaller_is_better() ? value < bar : value > bar;
  }

  Config config_;
  std::optional<double> best_;
  std::int64_t bad_ = 0, cooldown_ = 0;
  double factor_ = 1.0;
};

}  // namespace

std::shared_ptr<Scheduler> make(const Config& config, const Inputs& inputs) {
  if (inputs.metric_names != nullptr) {
    const std::vector<std::string>& names = *inputs.metric_names;
    if (std::find(names.begin(), names.end(), config.monitor) == names.end()) {
      std::string hint = "this recipe has ";
      for (std::size_t i = 0; i < names.size(); ++i) hint += (i == 0 ? "" : ", ") + names[i];
      const std::string near = runner::core::closest(config.monitor, names);
      if (!near.empty()) hint = "did you mean \"" + near + "\"?";
      const std::string what = "no metric of this recipe is called \"" + config.monitor + "\"";
      if (inputs.diagnostics == nullptr) throw runner::core::RunError(what, hint);
      inputs.diagnostics->error(inputs.location, what, hint);
      return nullptr;
    }
  }
  return std::make_shared<Plateau>(config);
}

}  // namespace components::lr_scheduler::plateau
