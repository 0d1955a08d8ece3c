#include "components/part/mixture.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <tuple>

#include "components/tensor/autocast.h"

namespace components::part {
namespace {

/// A frozen one may be of a smaller type than what it is multiplied with.
at::Tensor for_products(const at::Tensor& weight, const at::Tensor& x) {
  return weight.requires_grad() || Autocast::is_on(x.device().type()) ? weight : weight.to(x.scalar_type());
}

}  // namespace

ExpertStack::ExpertStack(Declared& declared, const std::string& name, std::int64_t experts, std::int64_t out,
                         std::int64_t in, const Init& init)
    : experts_(experts), out_(out), in_(in) {
  const std::string weight = name + ".weight";
  if (const QuantizedForm* form = declared.form_of(weight)) {
    quantized_ = std::make_unique<QuantizedProduct>(*form, experts * out, in, declared.on_meta());
    return;
  }
  const std::int64_t shape[] = {experts, out, in};
  weight_ = Weight(declared.parameter(weight, shape, init));
}

ExpertStack::~ExpertStack() = default;
ExpertStack::ExpertStack(ExpertStack&&) noexcept = default;
ExpertStack& ExpertStack::operator=(ExpertStack&&) noexcept = default;

std::vector<at::Tensor> ExpertStack::each() const {
  return quantized_ != nullptr ? std::vector<at::Tensor>() : weight_.tensor().unbind(0);
}

at::Tensor ExpertStack::forward(const at::Tensor& x_NI, std::int64_t e, const std::vector<at::Tensor>& each) const {
  if (quantized_ != nullptr) return quantized_->forward_rows(quantized_->as_input(x_NI), e * out_, out_);
  return at::linear(x_NI, for_products(each[static_cast<std::size_t>(e)], x_NI));
}

at::Tensor ExpertStack::matrix(std::int64_t e, bool bf16) const {
  if (quantized_ != nullptr) return quantized_->weight(e * out_, out_, bf16);
  return weight_.for_products(bf16, /*keeps=*/true).select(0, e);
}

Mixture::Mixture(Declared& declared, const std::string& name, const MixtureOptions& options)
    : options_(options),
      router_(declared, name + "_router", {options.width, options.experts, options.in, {}}),
      fc_(declared, name + "_experts_fc", options.experts, 2 * options.hidden, options.width, options.in),
      proj_(declared, name + "_experts_proj", options.experts, options.width, options.hidden, options.out) {}

Routing Mixture::routed(const at::Tensor& logits_NE) const {
  const at::Tensor probabilities_NE = at::softmax(logits_NE, -1, at::kFloat);
  auto [weights_NK, experts_NK] = at::topk(probabilities_NE, options_.chosen, -1);
  if (options_.normalized) weights_NK = weights_NK / weights_NK.sum(-1, /*keepdim=*/true);
  return {probabilities_NE, weights_NK, experts_NK};
}

ExpertRows Mixture::rows_of(const Routing& routing) const {
  const at::Tensor experts_M = routing.experts_NK.flatten();
  ExpertRows rows;
  rows.order_M = std::get<1>(at::sort(experts_M, /*stable=*/true, 0, /*descending=*/false));
  if (experts_M.is_meta()) {
    const std::int64_t all = experts_M.numel();
    for (std::int64_t e = 0; e < options_.experts; ++e) {
      rows.counts.push_back((e + 1) * all / options_.experts - e * all / options_.experts);
    }
    return rows;
  }
  const at::Tensor counts_E = at::bincount(experts_M, {}, options_.experts).cpu();
  const auto* const counts = counts_E.const_data_ptr<std::int64_t>();
  rows.counts.assign(counts, counts + options_.experts);
  return rows;
}

at::Tensor Mixture::forward(const at::Tensor& x_NC, const Routing& routing) const {
  const ExpertRows rows = rows_of(routing);
  // Copied first, so that the gradient of a position is a sum in a fixed order on every device.
  const at::Tensor copies_MC = x_NC.unsqueeze(1).expand({-1, options_.chosen, -1}).reshape({-1, options_.width});
  const std::vector<at::Tensor> pieces = copies_MC.index_select(0, rows.order_M).split_with_sizes(rows.counts, 0);
  const std::vector<at::Tensor> fc = fc_.each(), proj = proj_.each();
  std::vector<at::Tensor> given;
  for (std::size_t e = 0; e < pieces.size(); ++e) {
    if (rows.counts[e] == 0) continue;
    const auto expert = static_cast<std::int64_t>(e);
    const at::Tensor hidden = fc_.forward(pieces[e], expert, fc);
    const at::Tensor gate = hidden.narrow(-1, 0, options_.hidden);
    const at::Tensor up = hidden.narrow(-1, options_.hidden, options_.hidden);
    const at::Tensor active = activate(options_.activation, gate) * up;
    given.push_back(proj_.forward(active, expert, proj));
  }
  return summed(at::cat(given, 0), rows, routing);
}

at::Tensor Mixture::summed(const at::Tensor& given_MC, const ExpertRows& rows, const Routing& routing) const {
  const at::Tensor places_M = at::arange(rows.order_M.numel(), rows.order_M.options());
  const at::Tensor back_M = at::empty_like(rows.order_M).scatter_(0, rows.order_M, places_M);
  const at::Tensor by_position_NKC = given_MC.index_select(0, back_M).view({-1, options_.chosen, given_MC.size(1)});
  return (by_position_NKC * routing.weights_NK.unsqueeze(-1)).sum(1).to(given_MC.scalar_type());
}

at::Tensor balance_sums(const Routing& routing, const at::Tensor& real_N) {
  const at::Tensor& p_NE = routing.probabilities_NE;
  const std::int64_t chosen = routing.experts_NK.size(1);
  at::Tensor counted_N = real_N.defined() ? real_N.to(at::kFloat) : at::Tensor();
  const at::Tensor sums_E = counted_N.defined() ? (p_NE * counted_N.unsqueeze(-1)).sum(0) : p_NE.sum(0);
  if (!counted_N.defined()) counted_N = at::zeros({p_NE.size(0)}, p_NE.options().requires_grad(false)).fill_(1.0);
  const at::Tensor counts_E =
      at::zeros({p_NE.size(1)}, p_NE.options().requires_grad(false))
          .scatter_add_(0, routing.experts_NK.flatten(), counted_N.unsqueeze(-1).expand({-1, chosen}).reshape({-1}));
  return at::stack({counts_E, sums_E});
}

at::Tensor balance_loss(const at::Tensor& sums_2E, std::int64_t chosen) {
  const at::Tensor counts_E = sums_2E.select(0, 0);
  const at::Tensor positions = (counts_E.sum() / static_cast<double>(chosen)).clamp_min(1.0);
  const at::Tensor products_E = (counts_E / positions) * (sums_2E.select(0, 1) / positions);
  return products_E.sum() * static_cast<double>(sums_2E.size(1));
}

}  // namespace components::part
