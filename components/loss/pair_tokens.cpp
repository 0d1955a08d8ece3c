// B: pairs   T: positions of a row   N: tokens with a probability   C: features   V: classes

#include "components/loss/pair_tokens.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "components/loss/rows/token_logps.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"

namespace components::loss {
namespace {

at::Tensor is_before(const at::Tensor& end_B, const at::Tensor& like_BT) {
  const at::Tensor position_T = at::arange(like_BT.size(1), like_BT.options());
  return at::lt(position_T.unsqueeze(0), end_B.unsqueeze(1));
}

/// kTarget, with the tokens of the chosen prompts: each position of a chosen sequence predicts the next one.
at::Tensor with_chosen_prompts(const TensorMap& batch) {
  const at::Tensor& target_BT = batch.at(kTarget);
  const at::Tensor predicts_BT = is_before(batch.at(kRejectedAt) - 1, target_BT);
  return at::where(predicts_BT, batch.at(kInput).roll({-1}, {1}), target_BT);
}

/// Where there are no values every position may have a probability.
at::Tensor places_in(const at::Tensor& target_BT) {
  if (target_BT.is_meta()) return at::arange(target_BT.numel(), target_BT.options());
  return at::nonzero(target_BT.reshape({-1}).ne(kPadTarget)).squeeze(1);
}

}  // namespace

PairTokens::PairTokens(const TensorMap& batch, bool with_prompts)
    : target_BT_(with_prompts ? with_chosen_prompts(batch) : batch.at(kTarget)),
      is_completion_BT_(batch.at(kTarget).ne(kPadTarget)),
      is_chosen_BT_(is_before(batch.at(kRejectedAt), target_BT_)),
      place_N_(places_in(target_BT_)),
      target_N_(target_BT_.reshape({-1}).index_select(0, place_N_)) {}

at::Tensor PairTokens::of(const at::Tensor& rows) const {
  return rows.reshape({-1, rows.size(-1)}).index_select(0, place_N_);
}

at::Tensor PairTokens::logps_BT(const TensorMap& tensors) const {
  const at::Tensor* projection = tensors.find(kProjection);
  const at::Tensor logps_N = projection != nullptr ? token_logps(of(tensors.at(kHidden)), *projection, target_N_)
                                                   : token_logps(of(tensors.at(kOutput)), target_N_);
  if (logps_N.is_meta()) return logps_N;
  return at::zeros({target_BT_.numel()}, logps_N.options()).index_copy(0, place_N_, logps_N).view(target_BT_.sizes());
}

OfPairs PairTokens::sums(const at::Tensor& logps_BT, std::optional<double> ld_alpha) const {
  const at::Tensor is_of_chosen_BT = at::logical_and(is_completion_BT_, is_chosen_BT_);
  const at::Tensor is_of_rejected_BT = at::logical_and(is_completion_BT_, is_chosen_BT_.logical_not());
  const at::Tensor chosen_BT = at::where(is_of_chosen_BT, logps_BT, 0.0);
  const at::Tensor rejected_BT = at::where(is_of_rejected_BT, logps_BT, 0.0);
  if (!ld_alpha) return {chosen_BT.sum(1), rejected_BT.sum(1)};
  const OfPairs tokens = lengths();
  const at::Tensor shorter_B1 = at::minimum(tokens.chosen_B, tokens.rejected_B).unsqueeze(1);
  const auto weighted = [&](const at::Tensor& of_BT, const at::Tensor& is_of_BT) {
    return at::where(at::gt(is_of_BT.cumsum(1), shorter_B1), of_BT * *ld_alpha, of_BT).sum(1);
  };
  return {weighted(chosen_BT, is_of_chosen_BT), weighted(rejected_BT, is_of_rejected_BT)};
}

OfPairs PairTokens::lengths() const {
  return {at::logical_and(is_completion_BT_, is_chosen_BT_).sum(1),
          at::logical_and(is_completion_BT_, is_chosen_BT_.logical_not()).sum(1)};
}

OfPairs PairTokens::means(const OfPairs& sums) const {
  const OfPairs tokens = lengths();
  return {sums.chosen_B / tokens.chosen_B.clamp_min(1), sums.rejected_B / tokens.rejected_B.clamp_min(1)};
}

at::Tensor PairTokens::chosen_sum(const at::Tensor& logps_BT) const {
  return at::where(is_chosen_BT_, logps_BT, 0.0).sum();
}

std::int64_t PairTokens::chosen_count(const TensorMap& batch, bool with_prompts) {
  const at::Tensor target_BT = with_prompts ? with_chosen_prompts(batch) : batch.at(kTarget);
  const at::Tensor is_chosen_BT = is_before(batch.at(kRejectedAt), target_BT);
  return at::logical_and(is_chosen_BT, target_BT.ne(kPadTarget)).sum().item<std::int64_t>();
}

std::vector<std::string> pair_figure_names() {
  return {"rewards/chosen",  "rewards/rejected", "rewards/accuracies",
          "rewards/margins", "logps/chosen",     "logps/rejected"};
}

at::Tensor pair_figures(const OfPairs& rewards, const OfPairs& logps) {
  const at::Tensor chosen_B = rewards.chosen_B.detach(), rejected_B = rewards.rejected_B.detach();
  return at::stack({chosen_B, rejected_B, at::gt(chosen_B, rejected_B).to(at::kFloat), chosen_B - rejected_B,
                    logps.chosen_B.detach(), logps.rejected_B.detach()})
      .sum(1, false, at::kDouble);
}

bool are_pairs(const std::string& name, const Inputs& inputs, const char* records, const char* hint) {
  const runner::core::Location& location = inputs.block.location();
  if (inputs.data.find(kRejectedAt) == nullptr) {
    inputs.diagnostics.error(location, name + " needs " + records + ", but data.train has none", hint);
    return false;
  }
  if (!inputs.have({kOutput, kTarget})) return false;
  const TensorSpec &output = *inputs.find(kOutput), &target = *inputs.find(kTarget);
  if (output.dtype != Dtype::kFloat32 || output.shape.size() != 3) {
    inputs.diagnostics.error(
        location, name + " needs logits float32 [batch, time, classes], but the model returns " + to_text(output),
        "use a model that returns logits for each position, such as gpt");
    return false;
  }
  if (output.shape.back() < target.vocab_size) {
    const std::string ids = std::to_string(target.vocab_size);
    inputs.diagnostics.error(
        location,
        name + " needs " + ids + " outputs, one for each id of the data, but the model returns " + to_text(output),
        "give the model's last layer " + ids + " outputs");
    return false;
  }
  return true;
}

}  // namespace components::loss
