#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "components/callback/callback.h"
#include "generated/callback/early_stopping.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"

namespace components::callback::early_stopping {
namespace {

using runner::core::Node;

class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(const Config& config) : config_(config) {}

  bool acts_on_step(const Context&) const override { return false; }

  void on_eval_end(Context& context) override {
    const double* value = context.metric(config_.monitor);
    if (value == nullptr) return;
    if (improves(*value)) {
      best_ = *value;
      evaluations_without_ = 0;
      return;
    }
    if (++evaluations_without_ < config_.patience) return;
    context.request_stop(config_.monitor + " has not improved" +
                         (best_ ? " on " + runner::core::short_number(*best_, 6) : std::string(" on NaN")) + " for " +
                         std::to_string(evaluations_without_) +
                         (evaluations_without_ == 1 ? " evaluation" : " evaluations"));
  }

  void save_state(runner::core::StateWriter& writer) const override {
    writer.value("monitor", Node::string(config_.monitor));
    writer.value("mode", Node::string(smaller_is_better() ? "min" : "max"));
    writer.value("best", best_ ? Node::floating(*best_) : Node::null());
    writer.value("evaluations_without", Node::integer(evaluations_without_));
  }

  void load_state(const runner::core::StateReader& reader) override {
    // The best by another metric means nothing for this one.
    const bool same = !reader.has("monitor") || (reader.value("monitor").as_string() == config_.monitor &&
                                                 (reader.value("mode").as_string() == "min") == smaller_is_better());
    best_.reset();
    evaluations_without_ = 0;
    if (!same) return;
    const Node& best = reader.value("best");
    best_ = best.is_number() ? std::optional<double>(best.as_double()) : std::nullopt;
    evaluations_without_ = reader.value("evaluations_without").as_integer();
  }

 private:
  bool smaller_is_better() const { return config_.mode != Mode::kMax; }

  /// An infinite loss counts like NaN: it is no baseline for an improvement, and not a JSON number.
  bool improves(double value) const {
    if (!std::isfinite(value)) return false;
    if (!best_) return true;
    return smaller_is_better() ? value < *best_ - config_.min_delta : value > *best_ + config_.min_delta;
  }

  Config config_;
  std::optional<double> best_;
  std::int64_t evaluations_without_ = 0;
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs& inputs) {
  const std::vector<std::string>& names = inputs.metric_names;
  if (std::find(names.begin(), names.end(), config.monitor) == names.end()) {
    const Node* monitor = inputs.block.find("monitor");
    std::string hint = "this recipe has ";
    const std::string near = runner::core::closest(config.monitor, names);
    for (std::size_t i = 0; i < names.size(); ++i) hint += (i == 0 ? "" : ", ") + names[i];
    if (!near.empty()) hint = "did you mean \"" + near + "\"?";
    inputs.diagnostics.error(monitor == nullptr ? inputs.block.location() : monitor->location(),
                             "no metric of this recipe is called \"" + config.monitor + "\"", hint);
    return nullptr;
  }
  return std::make_shared<EarlyStopping>(config);
}

}  // namespace components::callback::early_stopping
