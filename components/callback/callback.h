#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/loss/loss.h"
#include "components/model/model.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/state.h"

namespace runner::core {
class Canvas;
}

namespace components::callback {

/// Rows under titles; scalars.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<runner::core::Node>> rows;
};

/// A program beside the training.
struct Program {
  std::vector<std::string> command = {};              ///< the program and its arguments; no shell reads them
  std::map<std::string, std::string> variables = {};  ///< beside the environment that every program gets
  std::string event = {};                             ///< what it is started for, as messages name it
  std::int64_t step = 0;                              ///< of the event
  double timeout_s = 0;                               ///< after which it is killed
  bool is_last = false;  ///< of the end of the training: started even where many others wait
};

/// A checkpoint that is whole on the disk.
struct SavedCheckpoint {
  std::string path;
  std::int64_t step = 0;
  double epoch = 0;
  std::map<std::string, double> metrics =
      {};  ///< of an evaluation at its step, by `DATA_SET/METRIC`; empty without one
};

/// What a callback may access. Valid only during the call.
class Context {
 public:
  virtual ~Context() = default;
  virtual std::int64_t step() const = 0;  ///< optimizer steps done
  virtual double epoch() const = 0;
  /// Latest value of a metric (`val/loss`); null when there is none yet.
  virtual const double* metric(const std::string& name) const = 0;
  /// Results of the evaluation at this step, by `DATA_SET/METRIC`; empty without one.
  virtual std::map<std::string, double> eval_metrics() const = 0;
  virtual const model::Model& model() const = 0;
  virtual const data::Dataset& train_data() const = 0;
  virtual std::uint64_t seed() const = 0;
  virtual void request_stop(const std::string& reason) = 0;
  /// Starts it behind those that were asked for before, one at a time, and returns at once. On rank 0 only, like
  /// everything logged. The training neither waits for it nor fails with it.
  virtual void start_program(Program program) = 0;
  virtual void log_metric(const std::string& name, double value) = 0;
  /// A text at this step: recorded in the run's events and shown.
  virtual void log_text(const std::string& name, const std::string& text) = 0;
  /// A mapping of values at this step, recorded in the run's events under `kind` and `name`.
  virtual void log_data(const std::string& kind, const std::string& name, runner::core::Node data) = 0;
  /// Written to the run's folder, shown by reports and sent to trackers that support it. On rank 0 only, like
  /// everything logged.
  virtual void log_table(const std::string& name, const Table& table) = 0;
  virtual void log_image(const std::string& name, const std::string& caption, const runner::core::Canvas& image) = 0;
  /// False on processes that do not log: they need not produce anything to log.
  virtual bool is_logging_rank() const = 0;
  /// The bytes of every rank, by rank. A collective; for a few kilobytes.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;
};

/// Samples of a data set with the model's outputs.
struct EvalBatch {
  std::int64_t first;  ///< index of the first sample; consecutive
  /// Of the batch and of the model (kInput, kTarget, kOutput, ...), without gradients, on the device of the training.
  const TensorMap& tensors;
  const loss::Loss& loss;
};

/// Called by the loop at fixed points, in the order of the recipe. State is saved with the run.
class Callback : public runner::core::Stateful {
 public:
  /// True if it reads the parameters' gradients, which are available in on_step_end().
  virtual bool reads_gradients() const { return false; }
  /// Reports what does not fit this model or these data, at its location in the recipe's `block`. Called before
  /// training.
  virtual void check_compatibility(const model::Model&, const data::Dataset& /*train_data*/,
                                   const runner::core::Node& /*block*/, runner::core::Diagnostics&) const {}
  /// False if on_step_end() has nothing to do after this step: it is not called then. Before a call the CPU waits for a
  /// training on another device, to know that the step and those before it are good.
  virtual bool acts_on_step(const Context&) const { return true; }
  virtual void on_step_end(Context&) {}
  /// The training has returned to a checkpoint: the run was resumed, or rolled back.
  virtual void on_load(Context&, const std::string& /*checkpoint*/) {}
  /// A checkpoint was saved; of an asynchronous save, some steps after its own. Only on processes that save: nothing
  /// here may be a collective.
  virtual void on_save(Context&, const SavedCheckpoint&) {}
  /// An evaluation of one data set, in the order of the recipe. One that is interrupted restarts from the beginning.
  /// With several processes each sees only its own batches.
  virtual void on_eval_begin(const std::string& /*data_set*/, const data::Dataset&) {}
  virtual void on_eval_batch(const EvalBatch&) {}
  /// All data sets are evaluated, their metrics known.
  virtual void on_eval_end(Context&) {}
  virtual void on_train_end(Context&) {}
};

struct Inputs {
  const runner::core::Node& block;
  runner::core::Diagnostics& diagnostics;
  const BatchSpec& data;
  /// All metric names that this recipe can produce (`loss`, `val/loss`, `val/accuracy`, ...), to check `monitor`.
  const std::vector<std::string>& metric_names;
};

std::shared_ptr<Callback> build(const runner::core::Node& block, const Inputs& inputs);

}  // namespace components::callback
