#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "components/callback/callback.h"

namespace tests {

/// A run as a callback sees it, without a loop.
class FakeRun final : public components::callback::Context {
 public:
  FakeRun() = default;
  explicit FakeRun(const components::model::Model& model) : model_(&model) {}
  FakeRun(const components::model::Model& model, const components::data::Dataset& data)
      : model_(&model), data_(&data) {}

  std::int64_t step() const override { return step_; }
  double epoch() const override { return epoch_; }
  const double* metric(const std::string& name) const override {
    const auto at = metrics_.find(name);
    return at == metrics_.end() ? nullptr : &at->second;
  }
  std::map<std::string, double> eval_metrics() const override { return metrics_; }
  const components::model::Model& model() const override { return *model_; }
  const components::data::Dataset& train_data() const override { return *data_; }
  std::uint64_t seed() const override { return 7; }
  void request_stop(const std::string& reason) override { stopped_ = reason; }
  void start_program(components::callback::Program program) override { programs_.push_back(std::move(program)); }
  void log_metric(const std::string&, double) override {}
  void log_text(const std::string& name, const std::string& text) override { texts_.emplace_back(name, text); }
  void log_data(const std::string& kind, const std::string& name, runner::core::Node data) override {
    data_logged_.emplace_back(kind + " " + name, std::move(data));
  }
  void log_table(const std::string& name, const components::callback::Table& table) override {
    tables_.emplace_back(name, table);
  }
  void log_image(const std::string& name, const std::string& caption, const runner::core::Canvas& image) override;
  bool is_logging_rank() const override { return true; }
  std::vector<std::string> gather(const std::string& mine) override {
    return gathered_ ? gathered_(mine) : std::vector{mine};
  }

  std::int64_t step_ = 0;
  double epoch_ = 0;
  std::map<std::string, double> metrics_;
  std::string stopped_;
  std::vector<components::callback::Program> programs_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::vector<std::pair<std::string, runner::core::Node>> data_logged_;
  std::vector<std::pair<std::string, components::callback::Table>> tables_;
  std::vector<std::string> images_;                                       ///< name, caption, width and height of each
  std::function<std::vector<std::string>(const std::string&)> gathered_;  ///< what all ranks hand over; empty: one rank

 private:
  const components::model::Model* model_ = nullptr;
  const components::data::Dataset* data_ = nullptr;
};

struct BuiltCallback {
  std::shared_ptr<components::callback::Callback> callback;
  std::string messages;
};
BuiltCallback build_callback(const std::string& text, const components::BatchSpec& data = {},
                             const std::vector<std::string>& metrics = {"loss", "val/loss", "val/accuracy"});

/// What a callback that is built without a problem refuses of a model and its data.
std::string compatibility_errors(const std::string& text, const components::model::Model& model,
                                 const components::data::Dataset& data);

/// The state of one, given to the other by way of JSON, as a checkpoint does.
void hand_over_state(const runner::core::Stateful& from, runner::core::Stateful& to);

}  // namespace tests
