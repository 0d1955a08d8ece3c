// B: pairs   T: positions of a row

#include <ATen/core/grad_mode.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/loss/pair_tokens.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/orpo.h"  // Config; declares make()

namespace components::loss::orpo {
namespace {

/// log(1 - exp(x)) of x < 0. Each form is exact on its side of -ln 2, and its gradient is finite on the other one.
at::Tensor log_of_rest(const at::Tensor& x) {
  constexpr double kMiddle = -0.6931471805599453;
  const at::Tensor is_low = at::lt(x, kMiddle);
  const at::Tensor low = at::log1p(-at::where(is_low, x, kMiddle).exp());
  const at::Tensor high = at::log(-at::expm1(at::where(is_low, kMiddle, x)));
  return at::where(is_low, low, high);
}

class Orpo final : public Loss {
 public:
  explicit Orpo(Config config) : config_(std::move(config)) {}

  std::vector<std::string> reads() const override { return {kOutput, kTarget, kInput, kRejectedAt}; }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }
  std::size_t further_means() const override { return 1; }
  std::vector<std::int64_t> further_counts(const TensorMap& batch) const override {
    return {PairTokens::chosen_count(batch, /*with_prompts=*/true)};
  }

  std::vector<std::string> figure_names() const override {
    std::vector<std::string> names = pair_figure_names();
    names.insert(names.end(), {"log_odds_ratio", "log_odds_chosen", "nll_loss"});
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
    const PairTokens tokens(tensors, /*with_prompts=*/true);
    const at::Tensor logps_BT = tokens.logps_BT(tensors);
    // What follows is a few numbers for each pair, by operations that LibTorch has no shapes of.
    if (logps_BT.is_meta()) return logps_BT.sum();
    const OfPairs logps = tokens.means(tokens.sums(logps_BT));
    const at::Tensor log_odds_B =
        (logps.chosen_B - logps.rejected_B) - (log_of_rest(logps.chosen_B) - log_of_rest(logps.rejected_B));
    const at::Tensor ratio = at::log_sigmoid(log_odds_B).sum(), nll = -tokens.chosen_sum(logps_BT);
    measure(logps, {ratio, log_odds_B.sum(), nll}, further_counts(tensors).front());
    return at::stack({ratio * -config_.beta, nll});
  }

  void measure(const OfPairs& logps, const std::vector<at::Tensor>& more, std::int64_t tokens) const {
    const at::NoGradGuard no_grad;
    const OfPairs rewards{logps.chosen_B * config_.beta, logps.rejected_B * config_.beta};
    std::vector<std::int64_t> counts(figure_names().size(), logps.chosen_B.size(0));
    counts.back() = tokens;
    figures_.add(with(pair_figures(rewards, logps), more), counts);
  }

  Config config_;
  mutable FigureSums figures_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  return are_pairs("orpo", inputs) ? std::make_shared<Orpo>(config) : nullptr;
}

}  // namespace components::loss::orpo
