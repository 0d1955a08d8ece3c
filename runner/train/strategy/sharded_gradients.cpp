#include "runner/train/strategy/sharded_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "components/model/model.h"
#include "generated/section/training.h"
#include "runner/distributed/bucket_assignment.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/ddp_options.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/grad_scaler.h"
#include "runner/train/experiment/gradients.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/stepper_options.h"

namespace runner::train {

class ShardedGradients::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(ShardedGradients& strategy, std::size_t parameter) : strategy_(strategy), parameter_(parameter) {}
  void operator()(const at::Tensor&) override {
    if (strategy_.is_open_) strategy_.note_gradient(parameter_);
  }

 private:
  ShardedGradients& strategy_;
  std::size_t parameter_;
};

ShardedGradients::ShardedGradients(const Experiment& experiment)
    : ShardedOptimizer(experiment),
      accumulates_(experiment.recipe.training->gradient_accumulation_steps.value_or(1) > 1) {
  const DdpOptions options = ddp_options(experiment.recipe);
  syncs_each_pass_ = options.sync_each_batch;
  bucket_bytes_ = options.bucket_bytes;
  for (const auto& parameter : experiment.model->parameters()) {
    weight_bytes_ += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
}

ShardedGradients::~ShardedGradients() { unhook(); }

void ShardedGradients::begin(const StrategyInputs& inputs) {
  ShardedOptimizer::begin(inputs);
  watch_gradients(inputs);
}

void ShardedGradients::watch_gradients(const StrategyInputs& inputs) {
  std::map<std::string, c10::ScalarType> low;
  if (all_multiply_bf16(inputs.experiment.device) && !keeps_gradients()) {
    const Experiment& experiment = inputs.experiment;
    low =
        lowered_weights(*experiment.model, autocast_of_blocks(experiment.recipe, *experiment.model), experiment.device);
  }
  std::vector<at::Tensor> backwards;
  for (std::size_t i = wholes().size(); i > 0; --i) backwards.push_back(wholes()[i - 1].tensor);
  const distributed::BucketAssignment assignment(backwards, inputs.options.ddp.bucket_bytes);
  std::vector<std::vector<RowGradients::Parameter>> members(assignment.floats.size());
  bucket_of_.assign(wholes().size(), 0);
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    const std::size_t bucket = assignment.parts[i].bucket, position = backwards.size() - 1 - i;
    bucket_of_[position] = bucket;
    const ShardPlace& own = place(position);
    const auto found = low.find(wholes()[position].name);
    const c10::ScalarType type = found != low.end() ? found->second : backwards[i].scalar_type();
    members[bucket].push_back({backwards[i], position, type, own.owner, own.replicated});
  }
  buckets_.clear();
  for (auto& of_bucket : members) {
    const std::size_t count = of_bucket.size();
    buckets_.push_back({RowGradients(std::move(of_bucket), place()), count, 0});
  }
  for (std::size_t i = 0; i < wholes().size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(wholes()[i].tensor, std::make_unique<Hook>(*this, i));
  }
}

bool ShardedGradients::all_multiply_bf16(c10::Device device) const {
  const at::Tensor lacking = at::full({1}, multiplies_bf16(device) ? 0.0F : 1.0F, at::kFloat);
  copy()->begin_all_reduce(lacking, "the type of the gradients", distributed::ReduceOp::kMax)->wait();
  return lacking.item<float>() == 0.0F;
}

void ShardedGradients::end() {
  unhook();
  ShardedOptimizer::end();
}

void ShardedGradients::unhook() {
  for (const auto& whole : wholes()) torch::autograd::impl::set_post_acc_grad_hooks(whole.tensor, nullptr);
}

void ShardedGradients::begin_step(const StepPlan& plan) {
  ShardedOptimizer::begin_step(plan);
  drop_gradients(shards());
  sums_.assign(wholes().size(), {});
  used_.assign(wholes().size(), false);
  exchanges_ = 0;
  const std::int64_t ranks = experiment_->ranks->size();
  most_ = exchanges_of((plan.passes + ranks - 1) / ranks);
  is_open_ = false;
  norm_ = 0.0;
}

std::int64_t ShardedGradients::exchanges_of(std::int64_t passes) const {
  return syncs_each_pass_ ? passes : std::min<std::int64_t>(passes, 1);
}

void ShardedGradients::before_backward(const Pass& pass) {
  if (pass.last || syncs_each_pass_) open_exchange();
}

void ShardedGradients::after_backward(const Pass&) {
  if (is_open_) close_exchange();
}

void ShardedGradients::open_exchange() {
  is_open_ = true;
  begin_exchange();
}

void ShardedGradients::close_exchange() {
  end_exchange();
  is_open_ = false;
  ++exchanges_;
}

RowGradients::Receive ShardedGradients::receive() {
  return [this](std::size_t parameter, const at::Tensor& rows, bool used) {
    if (!used) return;
    used_[parameter] = true;
    at::Tensor& sum = sums_[parameter];
    const bool is_all = rows.storage().nbytes() == rows.nbytes();  // else not with all that came with them
    sum = sum.defined() ? sum.add_(rows) : is_all ? rows : rows.clone();
  };
}

void ShardedGradients::begin_exchange() {
  next_ = 0;
  in_flight_ = false;
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
}

void ShardedGradients::note_gradient(std::size_t parameter) {
  --buckets_[bucket_of_[parameter]].missing;
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) launch_next();
}

/// Once the one before it is there: the gradients of two buckets are in memory, and those ahead of their turn.
void ShardedGradients::launch_next() {
  land();
  buckets_[next_++].gradients.begin(*copy());
  in_flight_ = true;
}

void ShardedGradients::land() {
  if (!std::exchange(in_flight_, false)) return;
  buckets_[next_ - 1].gradients.end(others(), receive());
}

void ShardedGradients::end_exchange() {
  while (next_ < buckets_.size()) launch_next();
  land();
}

RankNotes ShardedGradients::finish(const PassesEnd& end) {
  if (is_open_) close_exchange();  // of a failed pass
  while (exchanges_ < most_) {     // all ranks make as many exchanges as the busiest one
    open_exchange();
    close_exchange();
  }
  RankNotes notes = exchange().finish(end);
  exchange().sync_buffers(end.others_after);
  exchange().gradients().check_used(used_);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const at::Tensor& shard = shards()[i].tensor;
    if (sums_[i].defined()) shard.mutable_grad() = sums_[i].to(shard.scalar_type());
    sums_[i].reset();
  }
  return notes;
}

bool ShardedGradients::unscale(const GradScaler& scaler) {
  const bool finite = scaler.unscale(shards());
  if (!scaler.enabled() || copy() == nullptr) return finite;
  const at::Tensor overflows = at::full({1}, finite ? 0.0F : 1.0F, at::kFloat);
  copy()->begin_all_reduce(overflows, "overflows", distributed::ReduceOp::kMax)->wait();
  return overflows.item<float>() == 0.0F;
}

components::NamedTensors ShardedGradients::counted() const {
  components::NamedTensors counted;
  for (std::size_t i = 0; i < shards().size(); ++i) {
    if (place(i).counts()) counted.push_back(shards()[i]);
  }
  return counted;
}

/// Of all rows, the same on every process.
double ShardedGradients::total_norm() const {
  const double type = options_->clip.norm_type, own = total_gradient_norm(counted(), type);
  if (copy() == nullptr) return own;
  const bool largest = std::isinf(type);
  const at::Tensor total = at::full({1}, largest ? own : std::pow(own, type), at::kDouble);
  copy()
      ->begin_all_reduce(total, "the norm", largest ? distributed::ReduceOp::kMax : distributed::ReduceOp::kSum)
      ->wait();
  return largest ? total.item<double>() : std::pow(total.item<double>(), 1.0 / type);
}

// Measures in any case: whether it is wanted need not be the same on every process, and the exchange is.
std::optional<double> ShardedGradients::clip(bool) {
  const auto measured = [this] { return norm_ = total_norm(); };
  if (!options_->clip.norm) measured();
  clip_gradients(shards(), options_->clip, measured);
  return norm_;
}

void ShardedGradients::hand_over_gradients() {
  for (std::size_t i = 0; i < shards().size(); ++i) {
    if (!steps(i)) shards()[i].tensor.mutable_grad().reset();
  }
}

std::int64_t ShardedGradients::row_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& whole : wholes()) {
    bytes += count_of(shard_sizes(whole.tensor, place_of_parameter(whole.tensor))) *
             static_cast<std::int64_t>(sizeof(float));
  }
  return bytes;
}

std::int64_t ShardedGradients::held_gradient_bytes(const at::Tensor& parameter) const {
  if (keeps_gradients()) return static_cast<std::int64_t>(parameter.nbytes());
  return count_of(shard_sizes(parameter, place_of_parameter(parameter))) * static_cast<std::int64_t>(sizeof(float));
}

std::optional<HeldBytes> ShardedGradients::held_bytes() const {
  if (!keeps_gradients()) return {};
  HeldBytes held;
  held.weights = weight_bytes_;
  std::int64_t whole = 0;
  for (const auto& trained : wholes()) whole += static_cast<std::int64_t>(trained.tensor.nbytes());
  held.exchange = std::min(whole, 2 * bucket_bytes_);  // rows are added up as whole gradients go
  held.summed = row_bytes();
  return held;
}

}  // namespace runner::train
