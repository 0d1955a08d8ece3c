// B: pairs   T: positions of a row   N: tokens of all completions   C: features   V: classes

#include <ATen/ops/arange.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/loss.h"
#include "components/loss/token_logps.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/dpo.h"  // Config; declares make()

namespace components::loss::dpo {
namespace {

/// Logarithmic probabilities of the completions, [B] each: sums over their tokens.
struct Logps {
  at::Tensor chosen, rejected;
};

/// The tokens of completions among all positions.
struct Completions {
  explicit Completions(const TensorMap& batch)
      : target_BT(batch.at(kTarget)),
        place_N(places_in(target_BT)),
        target_N(target_BT.reshape({-1}).index_select(0, place_N)) {
    const at::Tensor position_T = at::arange(target_BT.size(1), target_BT.options());
    is_chosen_BT = at::lt(position_T.unsqueeze(0), batch.at(kRejectedAt).unsqueeze(1));
  }

  /// Where there are no values every position may be one of a completion.
  static at::Tensor places_in(const at::Tensor& target_BT) {
    if (target_BT.is_meta()) return at::arange(target_BT.numel(), target_BT.options());
    return at::nonzero(target_BT.reshape({-1}).ne(kPadTarget)).squeeze(1);
  }

  at::Tensor of(const at::Tensor& rows) const { return rows.reshape({-1, rows.size(-1)}).index_select(0, place_N); }

  /// The sums over each completion.
  Logps sums(const at::Tensor& logps_N) const {
    const at::Tensor logps_BT =
        at::zeros({target_BT.numel()}, logps_N.options()).index_copy(0, place_N, logps_N).view(target_BT.sizes());
    return {at::where(is_chosen_BT, logps_BT, 0.0).sum(1), at::where(is_chosen_BT, 0.0, logps_BT).sum(1)};
  }

  at::Tensor target_BT, place_N, target_N, is_chosen_BT;
};

class Dpo final : public Loss {
 public:
  explicit Dpo(const Config& config) : config_(config) {}

  std::vector<std::string> reads() const override {
    std::vector<std::string> names = {kOutput, kTarget, kRejectedAt};
    if (!config_.reference_free) names.insert(names.end(), {kReferenceChosen, kReferenceRejected});
    return names;
  }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }

  std::vector<std::string> figure_names() const override {
    return {"rewards/chosen",  "rewards/rejected", "rewards/accuracies",
            "rewards/margins", "logps/chosen",     "logps/rejected"};
  }

  Figures take_figures() const override {
    Figures taken{std::exchange(count_, 0), std::vector<double>(figure_names().size())};
    const at::Tensor sums = std::exchange(figures_, at::Tensor());
    if (!sums.defined()) return taken;
    const at::Tensor there = sums.cpu();
    for (std::size_t i = 0; i < taken.sums.size(); ++i) taken.sums[i] = there.const_data_ptr<double>()[i];
    return taken;
  }

  at::Tensor reference_of(const TensorMap& tensors) const override {
    const Completions completions(tensors);
    const Logps logps = completions.sums(of_tokens(tensors, completions));
    return at::stack({logps.chosen, logps.rejected}, 1);
  }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return sum_of_losses(tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double /*gradient*/) const override {
    return sum_of_losses(tensors);
  }

 private:
  static at::Tensor of_tokens(const TensorMap& tensors, const Completions& completions) {
    if (const at::Tensor* projection = tensors.find(kProjection)) {
      return token_logps(completions.of(tensors.at(kHidden)), *projection, completions.target_N);
    }
    return token_logps(completions.of(tensors.at(kOutput)), completions.target_N);
  }

  Logps of_reference(const TensorMap& tensors, const Logps& policy) const {
    if (!config_.reference_free) return {tensors.at(kReferenceChosen), tensors.at(kReferenceRejected)};
    return {at::zeros_like(policy.chosen), at::zeros_like(policy.rejected)};
  }

  at::Tensor sum_of_losses(const TensorMap& tensors) const {
    const Completions completions(tensors);
    const at::Tensor logps_N = of_tokens(tensors, completions);
    // What follows is a few numbers for each pair, by operations that LibTorch has no shapes of.
    if (logps_N.is_meta()) return logps_N.sum();
    Logps policy = completions.sums(logps_N);
    Logps reference = of_reference(tensors, policy);
    if (config_.loss_type == LossType::kIpo) {
      const at::Tensor ones_N = at::zeros({completions.place_N.size(0)}, policy.chosen.options()) + 1.0;
      const Logps tokens = completions.sums(ones_N);
      // A prompt that fills max_seq_len leaves no token of a completion.
      const at::Tensor of_chosen = tokens.chosen.clamp_min(1.0), of_rejected = tokens.rejected.clamp_min(1.0);
      policy = {policy.chosen / of_chosen, policy.rejected / of_rejected};
      reference = {reference.chosen / of_chosen, reference.rejected / of_rejected};
    }
    measure(policy, reference);
    return losses(policy.chosen - policy.rejected - (reference.chosen - reference.rejected)).sum();
  }

  at::Tensor losses(const at::Tensor& logits_B) const {
    if (config_.loss_type == LossType::kIpo) return (logits_B - 1.0 / (2.0 * config_.beta)).square();
    const at::Tensor scaled_B = logits_B * config_.beta;
    const at::Tensor losses_B = at::log_sigmoid(scaled_B) * -(1.0 - config_.label_smoothing);
    if (config_.label_smoothing == 0.0) return losses_B;
    return losses_B - at::log_sigmoid(-scaled_B) * config_.label_smoothing;
  }

  void measure(const Logps& policy, const Logps& reference) const {
    const at::Tensor of_chosen = policy.chosen.detach(), of_rejected = policy.rejected.detach();
    const at::Tensor chosen_B = (of_chosen - reference.chosen) * config_.beta;
    const at::Tensor rejected_B = (of_rejected - reference.rejected) * config_.beta;
    const at::Tensor sums = at::stack({chosen_B, rejected_B, at::gt(chosen_B, rejected_B).to(at::kFloat),
                                       chosen_B - rejected_B, of_chosen, of_rejected})
                                .sum(1, false, at::kDouble);
    figures_ = figures_.defined() ? figures_ + sums : sums;
    count_ += chosen_B.size(0);
  }

  Config config_;
  mutable at::Tensor figures_;  // [6] sums over the pairs since the last take_figures(), float64 on their device
  mutable std::int64_t count_ = 0;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  const runner::core::Location& location = inputs.block.location();
  if (inputs.data.find(kRejectedAt) == nullptr) {
    inputs.diagnostics.error(location, "dpo needs pairs of a chosen and a rejected completion, but data.train has none",
                             "use data of type jsonl whose records have prompt, chosen and rejected");
    return nullptr;
  }
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec &output = *inputs.find(kOutput), &target = *inputs.find(kTarget);
  if (output.dtype != Dtype::kFloat32 || output.shape.size() != 3) {
    inputs.diagnostics.error(
        location, "dpo needs logits float32 [batch, time, classes], but the model returns " + to_text(output),
        "use a model that returns logits for each position, such as gpt");
    return nullptr;
  }
  if (output.shape.back() < target.vocab_size) {
    inputs.diagnostics.error(location,
                             "dpo needs " + std::to_string(target.vocab_size) +
                                 " outputs, one for each id of the data, but the model returns " + to_text(output),
                             "give the model's last layer " + std::to_string(target.vocab_size) + " outputs");
    return nullptr;
  }
  return std::make_shared<Dpo>(config);
}

}  // namespace components::loss::dpo
