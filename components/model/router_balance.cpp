// E: experts   N: positions of all rows

#include "components/model/router_balance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "components/part/mixture.h"
#include "components/tensor/auxiliary_loss.h"
#include "components/tensor/tensors.h"

namespace components::model {
namespace {

constexpr const char* kSums = "router_sums";  // [2, E] of part::balance_sums(), of the blocks so far

}  // namespace

RouterBalance::RouterBalance(const StackOptions& options, std::int64_t layer, bool has_padding)
    : experts_(options.experts.count),
      chosen_(options.experts.chosen),
      factor_(*options.experts.balance),
      has_padding_(has_padding) {
  const std::vector<bool>& all = options.experts.of_layer;
  is_first_ = std::find(all.begin(), all.end(), true) - all.begin() == layer;
  is_last_ = std::find(all.begin() + layer + 1, all.end(), true) == all.end();
}

std::optional<TensorSpec> RouterBalance::input() const {
  if (is_first_) return std::nullopt;
  return TensorSpec{kSums, Dtype::kFloat32, {2, experts_}};
}

TensorSpec RouterBalance::output() const {
  if (is_last_) return {kAuxiliaryLoss, Dtype::kFloat32, {2}};
  return {kSums, Dtype::kFloat32, {2, experts_}};
}

void RouterBalance::add(const part::Routing& routing, TensorMap& activations) const {
  const at::Tensor real_N = has_padding_ ? activations.at(kAttentionMask).flatten() : at::Tensor();
  at::Tensor sums_2E = part::balance_sums(routing, real_N);
  if (!is_first_) sums_2E = sums_2E + activations.at(kSums);
  if (!is_last_) return activations.set(kSums, sums_2E);
  const at::Tensor loss = part::balance_loss(sums_2E, chosen_);
  activations.set(kAuxiliaryLoss, at::stack({loss * factor_, loss.detach()}));
}

}  // namespace components::model
