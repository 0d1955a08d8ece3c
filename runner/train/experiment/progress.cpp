#include "runner/train/experiment/progress.h"

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

// Sums of fractions (an epoch of 3 batches) end just below the whole number they represent.
double times_elapsed(double amount, double done) { return std::floor(done / amount + 1e-9); }

// No training reaches this count; below it products of counts fit into 64 bits.
constexpr double kCountMax = 9e15;

std::int64_t whole_count(double value) { return static_cast<std::int64_t>(std::ceil(std::min(value, kCountMax))); }

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace

std::int64_t EpochShape::batches() const { return divide_up(samples, micro_batch_size); }

std::int64_t EpochShape::steps_per_epoch() const {
  return sync_with_dataloader ? divide_up(batches(), accumulation_steps)
                              : std::max<std::int64_t>(1, batches() / accumulation_steps);
}

std::int64_t EpochShape::samples_after(std::int64_t steps) const {
  const double full = static_cast<double>(micro_batch_size) * static_cast<double>(accumulation_steps);
  if (static_cast<double>(steps) * full > kCountMax) return static_cast<std::int64_t>(kCountMax);
  std::int64_t epochs = 0, rest = steps * accumulation_steps;  // rest: micro-batches of the last, unfinished epoch
  if (sync_with_dataloader) {
    epochs = steps / steps_per_epoch();
    rest = steps % steps_per_epoch() * accumulation_steps;
  } else {
    epochs = rest / batches();
    rest %= batches();
  }
  return epochs * samples + std::min(rest * micro_batch_size, samples);
}

std::int64_t EpochShape::steps_until(std::int64_t wanted) const {
  const std::int64_t epochs = wanted / samples;
  const std::int64_t rest = divide_up(wanted % samples, micro_batch_size);
  if (sync_with_dataloader) return epochs * steps_per_epoch() + divide_up(rest, accumulation_steps);
  return divide_up(epochs * batches() + rest, accumulation_steps);
}

core::Node Progress::to_node() const {
  core::Node node = core::Node::mapping();
  node.set("step", core::Node::integer(step));
  node.set("micro_batches", core::Node::integer(micro_batches));
  node.set("samples", core::Node::integer(samples));
  node.set("tokens", core::Node::integer(tokens));
  if (target_tokens > 0) node.set("target_tokens", core::Node::integer(target_tokens));
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
  if (node.find("target_tokens") != nullptr) progress.target_tokens = read("target_tokens").as_integer();
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
  const auto end_after = [&total, &shape](double samples) {
    const std::int64_t steps = shape.steps_until(whole_count(samples));
    total = std::min(total.value_or(steps), steps);
  };
  // As in `Limits::reached`, just below the limit counts as reached.
  if (limits.max_epochs) end_after((*limits.max_epochs - 1e-9) * static_cast<double>(shape.samples));
  if (limits.max_tokens && shape.tokens_per_sample > 0) {
    end_after(*limits.max_tokens / static_cast<double>(shape.tokens_per_sample));
  }
  return total;
}

bool due(const core::Interval& interval, const Progress& before, const Progress& after, std::int64_t total) {
  if (interval.amount <= 0) return false;
  return times_elapsed(interval.amount, measure(interval.unit, after, total)) >
         times_elapsed(interval.amount, measure(interval.unit, before, total));
}

}  // namespace runner::train
