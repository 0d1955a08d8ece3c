#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "components/callback/callback.h"
#include "components/callback/evaluation_selector.h"
#include "generated/callback/command.h"
#include "runner/core/text/text.h"

namespace components::callback::command {
namespace {

using runner::core::Node;

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

std::string metrics_json(const std::map<std::string, double>& metrics) {
  Node values = Node::mapping();
  for (const auto& [name, value] : metrics) values.set(name, Node::floating(value));
  return runner::core::to_json(values, -1);
}

/// Epochs that are complete.
std::int64_t epochs_done(double epoch) {
  // A step at the end may miss it by a rounding error.
  return static_cast<std::int64_t>(std::floor(epoch + 1e-9));
}

class Command final : public Callback {
 public:
  explicit Command(Config config) : config_(std::move(config)) {}

  bool acts_on_step(const Context& context) const override {
    return starts_on(On::kEpoch) && epochs_done(context.epoch()) > epochs_;
  }

  void on_step_end(Context& context) override {
    epochs_ = epochs_done(context.epoch());
    tell(context, On::kEpoch, {"", context.step(), context.epoch(), context.eval_metrics()});
  }

  // No state of its own: an epoch that had ended at the checkpoint was told before it was saved.
  void on_load(Context& context, const std::string& checkpoint) override {
    epochs_ = epochs_done(context.epoch());
    checkpoint_ = checkpoint;
    tell(context, On::kLoad, {checkpoint, context.step(), context.epoch(), {}});
  }

  void on_save(Context& context, const SavedCheckpoint& saved) override {
    checkpoint_ = saved.path;
    tell(context, On::kSave, saved);
  }

  void on_eval_end(Context& context) override {
    tell(context, On::kEvaluation, {"", context.step(), context.epoch(), context.eval_metrics()});
  }

  void on_train_end(Context& context) override {
    tell(context, On::kEnd, {checkpoint_, context.step(), context.epoch(), context.eval_metrics()});
  }

 private:
  bool starts_on(On event) const { return std::find(config_.on.begin(), config_.on.end(), event) != config_.on.end(); }

  void tell(Context& context, On event, const SavedCheckpoint& state) const {
    if (!starts_on(event) || !context.is_logging_rank()) return;
    Program program;
    program.command = config_.run;
    program.event = to_text(event);
    program.step = state.step;
    program.timeout_s = config_.timeout;
    program.is_last = event == On::kEnd;
    program.variables = {{"ROUX_EVENT", program.event},
                         {"ROUX_STEP", std::to_string(state.step)},
                         {"ROUX_EPOCH", runner::core::number_text(state.epoch)}};
    if (!state.path.empty()) program.variables["ROUX_CHECKPOINT"] = absolute(state.path);
    if (!state.metrics.empty()) program.variables["ROUX_METRICS"] = metrics_json(state.metrics);
    context.start_program(std::move(program));
  }

  const Config config_;
  std::int64_t epochs_ = 0;  ///< complete ones
  std::string checkpoint_;   ///< the latest; "" for none
};

}  // namespace

std::shared_ptr<Callback> make(const Config& config, const Inputs& inputs) {
  const bool evaluates = std::find(config.on.begin(), config.on.end(), On::kEvaluation) != config.on.end();
  if (evaluates && !check_data_sets({}, "command on evaluation", inputs)) return nullptr;
  if (config.run.front().empty()) {
    inputs.diagnostics.error(inputs.block.at_path("run[0]")->location(),
                             "run names no program: its first text is empty",
                             "write the program first, such as run: [./script.sh]");
    return nullptr;
  }
  return std::make_shared<Command>(config);
}

}  // namespace components::callback::command
