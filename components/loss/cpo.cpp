// B: pairs   T: positions of a row

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/loss/pair_tokens.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/cpo.h"  // Config; declares make()
#include "runner/core/error.h"

namespace components::loss::cpo {
namespace {

class Cpo final : public Loss {
 public:
  explicit Cpo(Config config) : config_(std::move(config)) {}

  std::vector<std::string> reads() const override { return {kOutput, kTarget, kRejectedAt}; }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }
  std::size_t further_means() const override { return 1; }
  std::vector<std::int64_t> further_counts(const TensorMap& batch) const override {
    return {PairTokens::chosen_count(batch)};
  }

  std::vector<std::string> figure_names() const override {
    std::vector<std::string> names = pair_figure_names();
    names.emplace_back("nll_loss");
    return names;
  }
  Figures take_figures() const override { return figures_.take(figure_names().size()); }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return sum_of_losses(tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double /*gradient*/) const override {
    return sum_of_losses(tensors);
  }

 private:
  at::Tensor sum_of_losses(const TensorMap& tensors) const {
    const PairTokens tokens(tensors);
    const at::Tensor logps_BT = tokens.logps_BT(tensors);
    // What follows is a few numbers for each pair, by operations that LibTorch has no shapes of.
    if (logps_BT.is_meta()) return logps_BT.sum();
    const bool are_means = config_.loss_type == LossType::kIpo || config_.loss_type == LossType::kSimpo;
    OfPairs logps = tokens.sums(logps_BT);
    if (are_means) logps = tokens.means(logps);
    const OfPairs rewards{reward(logps.chosen_B), reward(logps.rejected_B)};
    const at::Tensor nll = -tokens.chosen_sum(logps_BT);
    measure(rewards, logps, nll, PairTokens::chosen_count(tensors));
    return at::stack({losses(rewards.chosen_B - rewards.rejected_B).sum(), nll * config_.cpo_alpha});
  }

  /// Of a completion, before `beta`; with `alpha` that of AlphaPO.
  at::Tensor reward(const at::Tensor& logps_B) const {
    if (config_.alpha == 0.0) return logps_B;
    return (1.0 - (logps_B * -config_.alpha).exp()) / config_.alpha;
  }

  /// Of each pair. `margin_B`: by how much the reward of the chosen completion is larger.
  at::Tensor losses(const at::Tensor& margin_B) const {
    const double beta = config_.beta, wrong = config_.label_smoothing;
    const auto smoothed = [wrong](const at::Tensor& logit_B) {
      return wrong == 0.0 ? -at::log_sigmoid(logit_B)
                          : at::log_sigmoid(logit_B) * -(1.0 - wrong) - at::log_sigmoid(-logit_B) * wrong;
    };
    switch (config_.loss_type) {
      case LossType::kSigmoid: return smoothed(margin_B * beta);
      case LossType::kSimpo: return smoothed(margin_B * beta - config_.simpo_gamma);
      case LossType::kHinge: return at::relu(1.0 - margin_B * beta);
      case LossType::kIpo: return (margin_B - 0.5 / beta).square();
    }
    RUNNER_ASSERT(false, "each type has its case");
  }

  void measure(const OfPairs& rewards, const OfPairs& logps, const at::Tensor& nll, std::int64_t tokens) const {
    const at::NoGradGuard no_grad;
    const OfPairs weighted{rewards.chosen_B * config_.beta, rewards.rejected_B * config_.beta};
    std::vector<std::int64_t> counts(pair_figure_names().size(), logps.chosen_B.size(0));
    counts.push_back(tokens);
    figures_.add(with(pair_figures(weighted, logps), {nll}), counts);
  }

  Config config_;
  mutable FigureSums figures_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  return are_pairs("cpo", inputs) ? std::make_shared<Cpo>(config) : nullptr;
}

}  // namespace components::loss::cpo
