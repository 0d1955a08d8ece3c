// B: samples   T: positions   C: classes (V, the vocabulary, for sequences)

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "components/loss/chunked_cross_entropy.h"
#include "components/loss/logits_cross_entropy.h"
#include "components/loss/loss.h"
#include "components/loss/projected_cross_entropy.h"
#include "components/ops/bf16_weight_cache.h"
#include "components/ops/kernel_policy.h"
#include "components/ops/reused_memory.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/cross_entropy.h"  // Config; declares make()
#include "runner/core/text/text.h"

namespace components::loss::cross_entropy {
namespace {

/// The weights as whole numbers below 2^24, exact as float32, so that what a mean is divided by stays a count. A common
/// factor changes no mean.
std::vector<std::int64_t> whole_weights(const Config& config) {
  std::vector<std::int64_t> whole;
  if (!config.weight) return whole;
  int exponent = 0;
  std::frexp(*std::max_element(config.weight->begin(), config.weight->end()), &exponent);
  for (const double weight : *config.weight) whole.push_back(std::llround(std::ldexp(weight, 24 - exponent)));
  return whole;
}

/// Of classes by how often the training set has them. Empty when an error was reported.
std::vector<double> balanced_weights(const Inputs& inputs) {
  const TensorSpec& target = *inputs.find(kTarget);
  const auto classes = static_cast<std::size_t>(inputs.find(kOutput)->shape.back());
  if (target.num_classes == 0) {
    inputs.diagnostics.error(
        inputs.block.find("balanced")->location(),
        "balanced weighs classes by how often data.train has them, but the target is " + to_text(target),
        "remove balanced");
    return {};
  }
  std::vector<double> weights(classes, 1.0);
  if (!inputs.class_counts) return weights;
  const std::vector<std::int64_t> counts = inputs.class_counts();
  const auto targets = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  const auto present = static_cast<double>(std::count_if(counts.begin(), counts.end(), [](auto n) { return n > 0; }));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) weights.at(i) = targets / (present * static_cast<double>(counts[i]));
  }
  return weights;
}

/// Whether there is one weight for each output, and each sample has a class.
bool check_weight(const Config& config, const Inputs& inputs) {
  if (!config.weight) return true;
  const runner::core::Location& location = inputs.block.find("weight")->location();
  const TensorSpec& target = *inputs.find(kTarget);
  const std::int64_t classes = inputs.find(kOutput)->shape.back();
  const auto weights = static_cast<std::int64_t>(config.weight->size());
  if (target.vocab_size > 0) {
    inputs.diagnostics.error(location, "weight weighs classes, but the target has ids of tokens, " + to_text(target),
                             "remove weight");
    return false;
  }
  if (weights != classes) {
    inputs.diagnostics.error(location,
                             "weight has " + runner::core::counted(weights, "number", "numbers") +
                                 ", but the model has " + std::to_string(classes) + " outputs",
                             "give one for each class, in the order of the classes");
    return false;
  }
  if (*std::max_element(config.weight->begin(), config.weight->end()) > 0.0) return true;
  inputs.diagnostics.error(location, "weight is 0 for each class, so that no target counts",
                           "give at least one class a weight above 0");
  return false;
}

class CrossEntropy final : public Loss {
 public:
  explicit CrossEntropy(const Config& config) : config_(config), weights_(whole_weights(config)) {}

  std::int64_t count(const TensorMap& batch) const override {
    const at::Tensor& target = batch.at(kTarget);
    if (!weights_.empty()) return sum_of_weights(target);
    if (!target.is_cpu()) return at::ne(target, config_.ignore_index).sum().item<std::int64_t>();
    const at::Tensor dense = target.contiguous();
    const std::int64_t* value = dense.const_data_ptr<std::int64_t>();
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < dense.numel(); ++i) counted += value[i] != config_.ignore_index ? 1 : 0;
    return counted;
  }

  bool count_is_static() const override { return weights_.empty(); }
  std::optional<std::int64_t> ignore_index() const override { return config_.ignore_index; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override {
    const at::Tensor& output = tensors.at(kOutput);
    const at::Tensor& target = tensors.at(kTarget);
    const at::Tensor logits_NC = output.dim() == 2 ? output : output.reshape({-1, output.size(-1)});
    const at::Tensor target_N = target.dim() == 1 ? target : target.reshape({-1});
    if (!weights_.empty()) {
      return at::cross_entropy_loss(logits_NC.to(at::kFloat), target_N, weights_on(logits_NC.device()),
                                    at::Reduction::Sum, config_.ignore_index, config_.label_smoothing);
    }
    if (logits_cross_entropy_fits(logits_NC)) {
      return logits_cross_entropy(logits_NC, target_N, config_.ignore_index, config_.label_smoothing);
    }
    // The log-softmax of bfloat16 logits would lose what the loss is about.
    return at::cross_entropy_loss(logits_NC.to(at::kFloat), target_N, {}, at::Reduction::Sum, config_.ignore_index,
                                  config_.label_smoothing);
  }

  at::Tensor sum_projected(const TensorMap& tensors, double gradient) const override {
    if (!weights_.empty()) return Loss::sum_projected(tensors, gradient);
    const at::Tensor& hidden = tensors.at(kHidden);
    const at::Tensor& weight_VC = tensors.at(kProjection);
    const ProjectedOptions options{config_.ignore_index, config_.label_smoothing, gradient};
    if (chunked_cross_entropy_fits(hidden, weight_VC)) {
      return chunked_cross_entropy(hidden, weight_VC, tensors.at(kTarget), options);
    }
    if (!fused_kernels() || !projected_cross_entropy_fits(hidden, weight_VC, config_.label_smoothing)) {
      return Loss::sum_projected(tensors, gradient);
    }
    return projected_cross_entropy(hidden, weight_VC, low_VC_, memory_, tensors.at(kTarget), options);
  }

 private:
  /// Of the targets that count, the weights.
  std::int64_t sum_of_weights(const at::Tensor& target) const {
    const at::Tensor dense = target.to(at::kCPU).contiguous();
    const std::int64_t* value = dense.const_data_ptr<std::int64_t>();
    const auto classes = static_cast<std::int64_t>(weights_.size());
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < dense.numel(); ++i) {
      const bool counts = value[i] != config_.ignore_index && value[i] >= 0 && value[i] < classes;
      sum += counts ? weights_[static_cast<std::size_t>(value[i])] : 0;
    }
    return sum;
  }

  const at::Tensor& weights_on(c10::Device device) const {
    if (!weight_C_.defined() || weight_C_.device() != device) {
      weight_C_ = at::tensor(weights_, at::kLong).to(at::kFloat).to(device);
    }
    return weight_C_;
  }

  Config config_;
  std::vector<std::int64_t> weights_;  // of classes; empty: 1 each
  mutable at::Tensor weight_C_;        // the same where the logits are, copied once
  mutable Bf16WeightCache low_VC_;     // the projection's copy; there is one projection
  mutable ReusedMemory memory_;        // of its gradient
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  if (inputs.data.find(kRejectedAt) != nullptr) {
    inputs.diagnostics.error(inputs.block.location(),
                             "cross_entropy is the loss of texts, but data.train has pairs of chosen and rejected",
                             "use loss: dpo, cpo or orpo, or records with prompt and completion");
    return nullptr;
  }
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  const TensorSpec& target = *inputs.find(kTarget);
  const runner::core::Location& location = inputs.block.location();
  if (target.dtype != Dtype::kInt64) {
    inputs.diagnostics.error(location,
                             "cross_entropy needs classes or ids as target, but the target is " + to_text(target),
                             "use mse for values, or task: classification for a table");
    return nullptr;
  }
  const bool fits = output.dtype == Dtype::kFloat32 && output.shape.size() == target.shape.size() + 1 &&
                    std::equal(target.shape.begin(), target.shape.end(), output.shape.begin());
  if (!fits) {
    const bool images = output.shape.size() == 4;  // channels, height and width
    std::string wanted = to_text({"", Dtype::kFloat32, target.shape});
    wanted.insert(wanted.size() - 1, ", classes");
    inputs.diagnostics.error(location,
                             "cross_entropy needs logits " + wanted + " for a target of " + to_text(target) +
                                 ", but the model returns " + to_text(output),
                             images ? "end the model with a pool, flatten and a linear layer"
                             : target.shape.size() == 1
                                 ? "reduce the positions first, for example with mean_pool"
                                 : "use a model that returns logits for each position, such as gpt");
    return nullptr;
  }
  const std::int64_t classes = target.num_classes > 0 ? target.num_classes : target.vocab_size;
  if (output.shape.back() < classes) {
    inputs.diagnostics.error(location,
                             "cross_entropy needs " + std::to_string(classes) +
                                 " outputs, one for each class of the data, but the model returns " + to_text(output),
                             "give the model's last layer " + std::to_string(classes) + " outputs");
    return nullptr;
  }
  if (target.has_ignored && config.ignore_index != kPadTarget) {
    const auto* written = inputs.block.find("ignore_index");
    inputs.diagnostics.error(written->location(),
                             "ignore_index is " + std::to_string(config.ignore_index) +
                                 ", but the data marks targets that have no part in the loss with " +
                                 std::to_string(kPadTarget),
                             "remove ignore_index");
    return nullptr;
  }
  if (!check_weight(config, inputs)) return nullptr;
  Config weighted = config;
  if (config.balanced) {
    weighted.weight = balanced_weights(inputs);
    if (weighted.weight->empty()) return nullptr;
  }
  return std::make_shared<CrossEntropy>(weighted);
}

}  // namespace components::loss::cross_entropy
