// B: records   T: positions of a row

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/loss/pair_tokens.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/kto.h"  // Config; declares make()

namespace components::loss::kto {
namespace {

class Kto final : public Loss {
 public:
  explicit Kto(Config config) : config_(std::move(config)) {}

  std::vector<std::string> reads() const override {
    std::vector<std::string> names = {kOutput, kTarget, kDesirable, kRejectedAt, kReferenceChosen, kReferenceRejected};
    if (needs_estimate()) names.emplace_back(kEstimate);
    return names;
  }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }

  std::vector<std::string> figure_names() const override {
    return {"rewards/chosen", "rewards/rejected", "logps/chosen", "logps/rejected", "kl"};
  }
  Figures take_figures() const override { return figures_.take(figure_names().size()); }

  at::Tensor reference_of(const TensorMap& tensors) const override {
    const OfPairs logps = logps_of(tensors);
    return at::stack({logps.chosen_B, logps.rejected_B}, 1);
  }

  bool needs_estimate() const override { return config_.loss_type == LossType::kKto; }
  /// The divergence from the reference on the completions of other records.
  at::Tensor estimate_of(const TensorMap& tensors) const override {
    return (logps_of(tensors).rejected_B - tensors.at(kReferenceRejected)).sum();
  }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return sum_of_losses(tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double /*gradient*/) const override {
    return sum_of_losses(tensors);
  }

 private:
  static OfPairs logps_of(const TensorMap& tensors) {
    const PairTokens tokens(tensors);
    return tokens.sums(tokens.logps_BT(tensors));
  }

  at::Tensor sum_of_losses(const TensorMap& tensors) const {
    const PairTokens tokens(tensors);
    const at::Tensor logps_BT = tokens.logps_BT(tensors);
    // What follows is a few numbers for each record, by operations that LibTorch has no shapes of.
    if (logps_BT.is_meta()) return logps_BT.sum();
    const at::Tensor logps_B = tokens.sums(logps_BT).chosen_B, ratio_B = logps_B - tensors.at(kReferenceChosen);
    const at::Tensor kl_B = needs_estimate() ? tensors.at(kEstimate).clamp_min(0) : at::zeros_like(ratio_B);
    measure(ratio_B, logps_B, kl_B, tensors.at(kDesirable));
    const double beta = config_.beta;
    // Of apo_zero_unpaired without its KL term, both are TRL's, too.
    const at::Tensor desirable_B = at::sigmoid((kl_B - ratio_B) * beta) * config_.desirable_weight;
    const at::Tensor undesirable_B = at::sigmoid((ratio_B - kl_B) * beta) * config_.undesirable_weight;
    return at::where(tensors.at(kDesirable), desirable_B, undesirable_B).sum();
  }

  void measure(const at::Tensor& ratio_B, const at::Tensor& logps_B, const at::Tensor& kl_B,
               const at::Tensor& is_desirable_B) const {
    const at::NoGradGuard no_grad;
    const at::Tensor reward_B = ratio_B * config_.beta, is_other_B = is_desirable_B.logical_not();
    const at::Tensor of_all_B = at::ones_like(is_desirable_B);
    std::vector<at::Tensor> figures, counts;
    for (const auto& [of_B, is_B] :
         {std::pair{reward_B, is_desirable_B}, std::pair{reward_B, is_other_B}, std::pair{logps_B, is_desirable_B},
          std::pair{logps_B, is_other_B}, std::pair{kl_B, of_all_B}}) {
      figures.push_back(at::where(is_B, of_B, 0.0).sum(0, false, at::kDouble));
      counts.push_back(is_B.sum(0, false, at::kDouble));
    }
    figures.insert(figures.end(), counts.begin(), counts.end());
    figures_.add(at::stack(figures));
  }

  Config config_;
  mutable FigureSums figures_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  const bool fits = are_pairs("kto", inputs, "records with a label",
                              "use data of type jsonl whose records have prompt, completion and label");
  return fits ? std::make_shared<Kto>(config) : nullptr;
}

}  // namespace components::loss::kto
