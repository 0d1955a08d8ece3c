// B: pairs   T: positions of a row

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/loss/pair_tokens.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/dpo.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::loss::dpo {
namespace {

/// What one loss takes of pairs: how much likelier the model makes each completion than the reference does, in
/// logarithms, [B] each, summed over its tokens and as the mean of them.
struct Pairs {
  at::Tensor chosen_B, rejected_B, mean_chosen_B, mean_rejected_B;
};

struct Term {
  LossType type;
  double weight;
};

constexpr LossType kTypes[] = {LossType::kSigmoid,  LossType::kSigmoidNorm, LossType::kHinge,   LossType::kIpo,
                               LossType::kRobust,   LossType::kExoPair,     LossType::kNcaPair, LossType::kBcoPair,
                               LossType::kSppoHard, LossType::kApoZero,     LossType::kApoDown, LossType::kDiscopop,
                               LossType::kSft};

std::optional<LossType> type_named(const std::string& name) {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](LossType one) { return to_text(one) == name; });
  return found == std::end(kTypes) ? std::nullopt : std::optional(*found);
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const LossType type : kTypes) names.emplace_back(to_text(type));
  return names;
}

class Dpo final : public Loss {
 public:
  Dpo(const Config& config, const std::vector<Term>& terms) : config_(config) {
    for (const Term& term : terms) {
      if (term.type == LossType::kSft) {
        sft_ = term.weight;
      } else {
        pair_terms_.push_back(term);
      }
    }
  }

  std::vector<std::string> reads() const override {
    std::vector<std::string> names = {kOutput, kTarget, kRejectedAt};
    if (!config_.reference_free) names.insert(names.end(), {kReferenceChosen, kReferenceRejected});
    return names;
  }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }
  std::size_t further_means() const override { return sft_ ? 1 : 0; }
  std::vector<std::int64_t> further_counts(const TensorMap& batch) const override {
    return sft_ ? std::vector{PairTokens::chosen_count(batch)} : std::vector<std::int64_t>();
  }

  std::vector<std::string> figure_names() const override { return pair_figure_names(); }
  Figures take_figures() const override { return figures_.take(pair_figure_names().size()); }

  at::Tensor reference_of(const TensorMap& tensors) const override {
    const PairTokens tokens(tensors);
    const OfPairs logps = tokens.sums(tokens.logps_BT(tensors), config_.ld_alpha);
    return at::stack({logps.chosen_B, logps.rejected_B}, 1);
  }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return sum_of_losses(tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double /*gradient*/) const override {
    return sum_of_losses(tensors);
  }

 private:
  OfPairs of_reference(const TensorMap& tensors, const OfPairs& policy) const {
    if (!config_.reference_free) return {tensors.at(kReferenceChosen), tensors.at(kReferenceRejected)};
    return {at::zeros_like(policy.chosen_B), at::zeros_like(policy.rejected_B)};
  }

  at::Tensor sum_of_losses(const TensorMap& tensors) const {
    const PairTokens tokens(tensors);
    const at::Tensor logps_BT = tokens.logps_BT(tensors);
    // What follows is a few numbers for each pair, by operations that LibTorch has no shapes of.
    if (logps_BT.is_meta()) return logps_BT.sum();
    const OfPairs policy = tokens.sums(logps_BT, config_.ld_alpha);
    const OfPairs reference = of_reference(tensors, policy);
    const OfPairs ratios{policy.chosen_B - reference.chosen_B, policy.rejected_B - reference.rejected_B};
    measure(policy, ratios);
    const OfPairs means = tokens.means(ratios);
    const Pairs pairs{ratios.chosen_B, ratios.rejected_B, means.chosen_B, means.rejected_B};
    at::Tensor sum;
    for (const Term& term : pair_terms_) {
      const at::Tensor one = losses(term.type, pairs).sum() * term.weight;
      sum = sum.defined() ? sum + one : one;
    }
    if (!sft_) return sum;
    const at::Tensor of_tokens = tokens.chosen_sum(logps_BT) * -*sft_;
    return at::stack({sum.defined() ? sum : at::zeros_like(of_tokens), of_tokens});
  }

  /// Of each pair.
  at::Tensor losses(LossType type, const Pairs& pairs) const {
    const double beta = config_.beta, wrong = config_.label_smoothing;
    const at::Tensor margin_B = (pairs.chosen_B - pairs.rejected_B) * beta;
    switch (type) {
      case LossType::kSigmoid:
        return wrong == 0.0 ? -at::log_sigmoid(margin_B)
                            : at::log_sigmoid(margin_B) * -(1.0 - wrong) - at::log_sigmoid(-margin_B) * wrong;
      case LossType::kSigmoidNorm: return -at::log_sigmoid((pairs.mean_chosen_B - pairs.mean_rejected_B) * beta);
      case LossType::kHinge: return at::relu(1.0 - margin_B);
      case LossType::kIpo: return (pairs.mean_chosen_B - pairs.mean_rejected_B - 0.5 / beta).square();
      case LossType::kRobust:
        return (at::log_sigmoid(margin_B) * -(1.0 - wrong) + at::log_sigmoid(-margin_B) * wrong) / (1.0 - 2.0 * wrong);
      case LossType::kExoPair:  // the divergence of (q, 1 - q) from (1 - wrong, wrong)
        return at::sigmoid(margin_B) * (at::log_sigmoid(margin_B) - std::log1p(-wrong)) +
               at::sigmoid(-margin_B) * (at::log_sigmoid(-margin_B) - std::log(wrong));
      case LossType::kNcaPair:
        return -at::log_sigmoid(pairs.chosen_B * beta) -
               (at::log_sigmoid(pairs.chosen_B * -beta) + at::log_sigmoid(pairs.rejected_B * -beta)) * 0.5;
      case LossType::kBcoPair:
        return -at::log_sigmoid(pairs.chosen_B * beta) - at::log_sigmoid(pairs.rejected_B * -beta);
      case LossType::kSppoHard:
        return (pairs.chosen_B - 0.5 / beta).square() + (pairs.rejected_B + 0.5 / beta).square();
      case LossType::kApoZero: return at::sigmoid(pairs.chosen_B * -beta) + at::sigmoid(pairs.rejected_B * beta);
      case LossType::kApoDown: return at::sigmoid(pairs.chosen_B * beta) + at::sigmoid(-margin_B);
      case LossType::kDiscopop: {
        const at::Tensor share_B = at::sigmoid(margin_B / config_.discopop_tau);
        return -at::log_sigmoid(margin_B) * (1.0 - share_B) + (-margin_B).exp() * share_B;
      }
      case LossType::kSft: break;  // no loss of a pair
    }
    RUNNER_ASSERT(false, "each loss of a pair has its case");
  }

  void measure(const OfPairs& policy, const OfPairs& ratios) const {
    const at::NoGradGuard no_grad;
    const OfPairs rewards{ratios.chosen_B * config_.beta, ratios.rejected_B * config_.beta};
    figures_.add(pair_figures(rewards, policy),
                 std::vector<std::int64_t>(pair_figure_names().size(), policy.chosen_B.size(0)));
  }

  Config config_;
  std::vector<Term> pair_terms_;
  std::optional<double> sft_;  // the weight of the mean over chosen tokens
  mutable FigureSums figures_;
};

/// The losses that the recipe names. Empty when an error was reported.
std::vector<Term> terms_of(const Config& config, const Inputs& inputs) {
  const auto error = [&](const char* key, std::string message, runner::core::Hint hint) {
    const runner::core::Node& value = *inputs.block.find(key);
    const bool is_default = value.has_origin(runner::core::Origin::kDefault);
    inputs.diagnostics.error((is_default ? inputs.block : value).location(), std::move(message), std::move(hint));
    return std::vector<Term>();
  };
  std::vector<Term> terms;
  for (const auto& [name, weight] : config.losses) {
    const std::optional<LossType> type = type_named(name);
    if (!type) {
      const std::string near = runner::core::closest(name, type_names());
      return error("losses", "no loss of pairs is called " + runner::core::quote(name),
                   near.empty() ? runner::core::Hint("there are " + runner::core::joined(type_names()))
                                : runner::core::Hint("did you mean " + runner::core::quote(near) + "?"));
    }
    terms.push_back({*type, weight});
  }
  if (!terms.empty() && std::all_of(terms.begin(), terms.end(), [](const Term& term) { return term.weight == 0; })) {
    return error("losses", "each weight in losses is 0, so nothing would be learnt",
                 "give one of them a weight above 0");
  }
  if (!terms.empty() && config.loss_type != Config().loss_type) {  // a recorded recipe has the default, too
    return error("losses", "losses stands in place of loss_type, which is " + std::string(to_text(config.loss_type)),
                 "remove loss_type, and give it a weight in losses");
  }
  if (terms.empty()) terms.push_back({config.loss_type, 1.0});
  const auto has = [&terms](std::initializer_list<LossType> types) {
    return std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
      return std::find(types.begin(), types.end(), term.type) != types.end();
    });
  };
  if (config.label_smoothing > 0 && !has({LossType::kSigmoid, LossType::kRobust, LossType::kExoPair})) {
    return error("label_smoothing", "label_smoothing is for sigmoid, robust and exo_pair", "leave label_smoothing out");
  }
  if (config.discopop_tau != Config().discopop_tau && !has({LossType::kDiscopop})) {
    return error("discopop_tau", "discopop_tau is for discopop", "leave discopop_tau out");
  }
  if (config.label_smoothing == 0 && has({LossType::kExoPair})) {
    return error("label_smoothing", "exo_pair needs label_smoothing above 0", "write label_smoothing: 0.001");
  }
  return terms;
}

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  if (!are_pairs("dpo", inputs)) return nullptr;
  const std::vector<Term> terms = terms_of(config, inputs);
  return terms.empty() ? nullptr : std::make_shared<Dpo>(config, terms);
}

}  // namespace components::loss::dpo
