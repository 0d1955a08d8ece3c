#include "runner/train/progress.h"

#include <algorithm>
#include <cmath>

#include "runner/core/error.h"

namespace runner::train {
namespace {

double measure(core::Interval::Unit unit, const Progress& progress, std::int64_t total) {
  using Unit = core::Interval::Unit;
  switch (unit) {
    case Unit::kSteps: return static_cast<double>(progress.step);
    case Unit::kEpochs: return progress.epoch;
    case Unit::kBatches: return static_cast<double>(progress.micro_batches);
    case Unit::kTokens: return static_cast<double>(progress.tokens);
    case Unit::kSamples: return static_cast<double>(progress.samples);
    case Unit::kSeconds: return progress.seconds;
    case Unit::kDuration: return total > 0 ? static_cast<double>(progress.step) / static_cast<double>(total) : 0.0;
  }
  return 0.0;
}

// Sums of fractions (an epoch of 3 batches) land a hair below the whole number that they stand for.
double times_elapsed(double amount, double done) { return std::floor(done / amount + 1e-9); }

}  // namespace

core::Node Progress::to_node() const {
  core::Node node = core::Node::mapping();
  node.set("step", core::Node::integer(step));
  node.set("micro_batches", core::Node::integer(micro_batches));
  node.set("samples", core::Node::integer(samples));
  node.set("tokens", core::Node::integer(tokens));
  node.set("epoch", core::Node::floating(epoch));
  node.set("seconds", core::Node::floating(seconds));
  return node;
}

Progress Progress::from_node(const core::Node& node) {
  const auto read = [&node](const char* key) -> const core::Node& {
    const core::Node* value = node.find(key);
    if (value == nullptr || !value->is_number()) {
      throw core::RunError(std::string("the checkpoint's trainer.json has no counter \"") + key + "\"");
    }
    return *value;
  };
  Progress progress;
  progress.step = read("step").as_integer();
  progress.micro_batches = read("micro_batches").as_integer();
  progress.samples = read("samples").as_integer();
  progress.tokens = read("tokens").as_integer();
  progress.epoch = read("epoch").as_double();
  progress.seconds = read("seconds").as_double();
  return progress;
}

std::string Limits::reached(const Progress& progress) const {
  const auto text = [](double value) { return core::Node::floating(value).scalar_text(); };
  if (max_steps && progress.step >= *max_steps) return "max_steps " + std::to_string(*max_steps);
  if (max_epochs && progress.epoch >= *max_epochs - 1e-9) return "max_epochs " + text(*max_epochs);
  if (max_tokens && static_cast<double>(progress.tokens) >= *max_tokens) return "max_tokens " + text(*max_tokens);
  if (max_time_s && progress.seconds >= *max_time_s) return "max_time " + core::format_duration(*max_time_s);
  return "";
}

std::optional<std::int64_t> total_steps(const Limits& limits, const EpochShape& shape) {
  std::optional<std::int64_t> total = limits.max_steps;
  const auto take_smaller = [&total](double steps) {
    const auto whole = static_cast<std::int64_t>(std::ceil(std::min(steps, 9e15) - 1e-9));
    total = std::min(total.value_or(whole), whole);
  };
  if (limits.max_epochs) take_smaller(*limits.max_epochs * static_cast<double>(shape.steps_per_epoch));
  if (limits.max_tokens && shape.tokens_per_step > 0) {
    take_smaller(*limits.max_tokens / static_cast<double>(shape.tokens_per_step));
  }
  return total;
}

bool due(const core::Interval& interval, const Progress& before, const Progress& after, std::int64_t total) {
  if (interval.amount <= 0) return false;
  return times_elapsed(interval.amount, measure(interval.unit, after, total)) >
         times_elapsed(interval.amount, measure(interval.unit, before, total));
}

}  // namespace runner::train
