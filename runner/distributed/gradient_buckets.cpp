#include "runner/distributed/gradient_buckets.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runner/core/error.h"
#include "runner/distributed/bucket_assignment.h"

namespace runner::distributed {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::size_t kParts = 3;  // floats that represent a double exactly: 3 x 24 of 53 bits

/// Splits a double into floats that sum to it exactly, at any magnitude within float's range.
std::array<float, kParts> parts_of(double value) {
  std::array<float, kParts> parts{};
  for (float& part : parts) {
    part = static_cast<float>(value);
    value -= static_cast<double>(part);
    if (value != value) value = 0;  // a non-finite value has a non-finite first part
  }
  return parts;
}

/// Buckets are float32, on the device of the gradients.
at::TensorOptions options_of(const std::vector<at::Tensor>& parameters) {
  return at::TensorOptions(at::kFloat).device(parameters.empty() ? at::kCPU : parameters.front().device());
}

double whole_of(const float* parts) {
  double value = 0;
  for (std::size_t i = 0; i < kParts; ++i) value += static_cast<double>(parts[i]);
  return value;
}

}  // namespace

struct GradientBuckets::Bucket {
  std::int64_t floats = 0;
  std::size_t parameters = 0, missing = 0;  // gradients in it; gradients still missing
  at::Tensor flat, total;                   // sum of this step's completed passes
  std::vector<at::Tensor> gradients;        // parts of `flat`
};

class GradientBuckets::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientBuckets& buckets, std::size_t parameter) : buckets_(buckets), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { buckets_.mark_ready(parameter_); }

 private:
  GradientBuckets& buckets_;
  std::size_t parameter_;
};

GradientBuckets::GradientBuckets(ProcessGroup& group, CommHook& comm_hook, const std::vector<at::Tensor>& parameters,
                                 const Options& options)
    : group_(group), comm_hook_(comm_hook), notes_(options.notes) {
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (parameter->requires_grad()) parameters_.push_back(*parameter);
  }
  const BucketAssignment assignment(parameters_, options.bucket_bytes);
  buckets_.resize(assignment.floats.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i].floats = assignment.floats[i];
  for (const BucketAssignment::Part& part : assignment.parts) {
    bucket_of_.push_back(part.bucket);
    ++buckets_[part.bucket].parameters;
  }
  // Whether a rank has a gradient for a parameter, then each rank's notes: all other ranks contribute zeros.
  const auto tail =
      static_cast<std::int64_t>(parameters_.size() + notes_ * kParts * static_cast<std::size_t>(group.size()));
  const bool rides_along = !comm_hook.averages();
  for (Bucket& bucket : buckets_) {
    const bool carries = rides_along && &bucket == &buckets_.back();
    bucket.flat = at::zeros({bucket.floats + (carries ? tail : 0)}, options_of(parameters_));
  }
  const auto own_tail = [tail] { return at::zeros({tail}, at::kFloat); };
  tail_ = {rides_along ? buckets_.back().flat.narrow(0, buckets_.back().floats, tail) : own_tail()};
  readable_tail_ = {tail_.front().is_cpu() ? tail_.front() : own_tail()};
  ready_.assign(parameters_.size(), false);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Bucket& bucket = buckets_[bucket_of_[i]];
    views_.push_back(view_of(bucket.flat, assignment.parts[i], parameters_[i]));
    bucket.gradients.push_back(views_.back());
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[i], std::make_unique<Hook>(*this, i));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const at::Tensor& parameter : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

std::int64_t GradientBuckets::bytes() const {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.flat.numel() * kFloatBytes;
  return bytes;
}

std::size_t GradientBuckets::buckets() const { return buckets_.size(); }

void GradientBuckets::begin() {
  if (!under_way_) {  // the first pass of a step
    passes_ = 0;
    has_gradient_.assign(parameters_.size(), false);
  }
  armed_ = true;
  next_ = 0;
  ready_.assign(parameters_.size(), false);
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
}

// Frees the gradient that the pass made: the optimizer later reads the bucket itself, if that has the parameter's type.
void GradientBuckets::mark_ready(std::size_t parameter) {
  if (!armed_) return;
  const at::NoGradGuard no_grad;
  accumulate_finished_pass();
  at::Tensor& gradient = parameters_[parameter].mutable_grad();
  RUNNER_ASSERT(!ready_[parameter], "a gradient is accumulated once in a backward pass");
  views_[parameter].copy_(gradient);
  gradient.reset();
  ready_[parameter] = true;
  --buckets_[bucket_of_[parameter]].missing;
  start_ready_buckets();
}

/// All but the last one, which waits for the notes.
void GradientBuckets::start_ready_buckets() {
  while (next_ + 1 < buckets_.size() && buckets_[next_].missing == 0) {
    const Bucket& bucket = buckets_[next_++];
    comm_hook_.launch(bucket.flat, bucket.gradients);
  }
}

/// The buckets are free again once the previous pass is reduced.
void GradientBuckets::accumulate_finished_pass() {
  if (!under_way_) return;
  under_way_ = false;
  comm_hook_.wait();
  for (Bucket& bucket : buckets_) {
    if (passes_ == 0) {
      bucket.total = bucket.flat.clone();
    } else {
      bucket.total.add_(bucket.flat);
    }
  }
  ++passes_;
}

void GradientBuckets::start_remaining_buckets() {
  accumulate_finished_pass();  // of a rank without a pass since
  armed_ = false;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (ready_[i]) {
      has_gradient_[i] = true;
      continue;
    }
    // From the earlier passes, the only ones for some parameters.
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (gradient.defined()) {
      has_gradient_[i] = true;
      views_[i].copy_(gradient);
      gradient.reset();
    } else {
      views_[i].zero_();
    }
  }
  for (Bucket& bucket : buckets_) bucket.missing = 0;
  start_ready_buckets();
}

void GradientBuckets::end_pass() {
  RUNNER_ASSERT(armed_, "a pass begins before it ends");
  const at::NoGradGuard no_grad;
  start_remaining_buckets();
  if (!comm_hook_.averages()) tail_.front().zero_();
  comm_hook_.launch(buckets_.back().flat, buckets_.back().gradients);
  under_way_ = true;
}

std::vector<std::vector<double>> GradientBuckets::finish(std::span<const double> notes) {
  RUNNER_ASSERT(armed_ && notes.size() == notes_, "a step begins before it ends, with the announced number of notes");
  const at::NoGradGuard no_grad;
  start_remaining_buckets();
  write_notes(notes);
  const auto travelling = comm_hook_.averages() ? group_.begin_all_reduce(tail_.front(), "notes") : nullptr;
  comm_hook_.launch(buckets_.back().flat, buckets_.back().gradients);
  if (travelling != nullptr) travelling->wait();
  comm_hook_.wait();
  if (!tail_.front().is_cpu()) readable_tail_.front().copy_(tail_.front());
  for (Bucket& bucket : buckets_) {
    if (passes_ > 0) bucket.flat.add_(bucket.total);
    bucket.total.reset();
  }
  const float* ranks_with_gradient = readable_tail_.front().const_data_ptr<float>();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    gradient.reset();
    if (ranks_with_gradient[i] > 0) gradient = views_[i].to(parameters_[i].scalar_type());
  }
  return read_notes(notes.size());
}

void GradientBuckets::write_notes(std::span<const double> notes) {
  readable_tail_.front().zero_();
  float* tail = readable_tail_.front().mutable_data_ptr<float>();
  for (const bool has_gradient : has_gradient_) *tail++ = has_gradient ? 1.0F : 0.0F;
  tail += static_cast<std::size_t>(group_.rank()) * notes.size() * kParts;
  for (const double note : notes) {
    for (const float part : parts_of(note)) *tail++ = part;
  }
  if (!tail_.front().is_cpu()) tail_.front().copy_(readable_tail_.front());
}

std::vector<std::vector<double>> GradientBuckets::read_notes(std::size_t count) const {
  const float* tail = readable_tail_.front().const_data_ptr<float>() + parameters_.size();
  std::vector<std::vector<double>> all(static_cast<std::size_t>(group_.size()));
  for (std::vector<double>& notes : all) {
    for (std::size_t i = 0; i < count; ++i, tail += kParts) notes.push_back(whole_of(tail));
  }
  return all;
}

}  // namespace runner::distributed
