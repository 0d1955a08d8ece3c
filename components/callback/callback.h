#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "components/data/data.h"
#include "components/model/model.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace components::callback {

/// What a callback may see and do. Valid during the call only.
class Context {
 public:
  virtual ~Context() = default;
  virtual std::int64_t step() const = 0;  ///< optimizer steps done
  virtual double epoch() const = 0;
  /// Latest value of a metric (`val/loss`); null when there is none yet.
  virtual const double* metric(const std::string& name) const = 0;
  virtual const model::Model& model() const = 0;
  virtual const data::Dataset& train_data() const = 0;
  virtual std::uint64_t seed() const = 0;
  virtual void request_stop(const std::string& reason) = 0;
  virtual void log_metric(const std::string& name, double value) = 0;
  /// A text at this step: kept in the run's events and shown.
  virtual void log_text(const std::string& name, const std::string& text) = 0;
  /// A mapping of figures at this step, kept in the run's events under `kind` and `name`.
  virtual void log_data(const std::string& kind, const std::string& name, runner::core::Node data) = 0;
};

/// Called by the loop at fixed points, in the order of the recipe. State is saved with the run.
class Callback : public runner::core::Stateful {
 public:
  /// True when it looks at the parameters' gradients, which are there in on_step_end().
  virtual bool reads_gradients() const { return false; }
  /// Says what suits neither this model nor these data, at its place in the recipe's `block`. Before the training.
  virtual void refuse_misfits(const model::Model&, const data::Dataset& /*train_data*/,
                              const runner::core::Node& /*block*/, runner::core::Diagnostics&) const {}
  virtual void on_step_end(Context&) {}
  virtual void on_eval_end(Context&) {}
  virtual void on_train_end(Context&) {}
};

struct Inputs {
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
  const DataSignature& data;
  /// Every metric name that this recipe can produce (`loss`, `val/loss`, `val/accuracy`, ...), to check `monitor`.
  const std::vector<std::string>& metric_names;
};

std::shared_ptr<Callback> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::callback
