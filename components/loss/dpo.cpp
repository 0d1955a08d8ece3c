// B: pairs   T: positions of a row   N: tokens of all completions   C: features   V: classes

#include <ATen/ops/arange.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
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

#include "components/loss/loss.h"
#include "components/loss/token_logps.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/dpo.h"  // Config; declares make()
#include "runner/core/error.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

namespace components::loss::dpo {
namespace {

/// Figures of the completions, [B] each: logarithmic probabilities, summed over their tokens, or counts of tokens.
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

  /// The sums over each completion. `ld_alpha`: the weight of tokens behind the length of the shorter one.
  Logps sums(const at::Tensor& logps_N, std::optional<double> ld_alpha) const {
    const at::Tensor logps_BT =
        at::zeros({target_BT.numel()}, logps_N.options()).index_copy(0, place_N, logps_N).view(target_BT.sizes());
    const at::Tensor chosen_BT = at::where(is_chosen_BT, logps_BT, 0.0);
    const at::Tensor rejected_BT = at::where(is_chosen_BT, 0.0, logps_BT);
    if (!ld_alpha) return {chosen_BT.sum(1), rejected_BT.sum(1)};
    const Logps tokens = lengths();
    const at::Tensor shorter_B1 = at::minimum(tokens.chosen, tokens.rejected).unsqueeze(1);
    const auto weighted = [&](const at::Tensor& of_BT, const at::Tensor& is_of_BT) {
      const at::Tensor at_BT = at::logical_and(target_BT.ne(kPadTarget), is_of_BT).cumsum(1);
      return at::where(at::gt(at_BT, shorter_B1), of_BT * *ld_alpha, of_BT).sum(1);
    };
    return {weighted(chosen_BT, is_chosen_BT), weighted(rejected_BT, is_chosen_BT.logical_not())};
  }

  /// Tokens of each completion.
  Logps lengths() const {
    const at::Tensor is_token_BT = target_BT.ne(kPadTarget);
    return {at::logical_and(is_token_BT, is_chosen_BT).sum(1),
            at::logical_and(is_token_BT, is_chosen_BT.logical_not()).sum(1)};
  }

  at::Tensor target_BT, place_N, target_N, is_chosen_BT;
};

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
                               LossType::kSppoHard, LossType::kApoZero,     LossType::kApoDown, LossType::kDiscopop};

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
  Dpo(const Config& config, std::vector<Term> terms) : config_(config), terms_(std::move(terms)) {}

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
    const Logps logps = completions.sums(of_tokens(tensors, completions), config_.ld_alpha);
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
    const Logps policy = completions.sums(logps_N, config_.ld_alpha);
    const Logps reference = of_reference(tensors, policy);
    measure(policy, reference);
    const Logps tokens = completions.lengths();
    Pairs pairs{policy.chosen - reference.chosen, policy.rejected - reference.rejected, {}, {}};
    // A prompt that fills max_seq_len leaves no token of a completion.
    pairs.mean_chosen_B = pairs.chosen_B / tokens.chosen.clamp_min(1);
    pairs.mean_rejected_B = pairs.rejected_B / tokens.rejected.clamp_min(1);
    at::Tensor sum;
    for (const Term& term : terms_) {
      const at::Tensor one = losses(term.type, pairs).sum() * term.weight;
      sum = sum.defined() ? sum + one : one;
    }
    return sum;
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
    }
    RUNNER_ASSERT(false, "each type has its case");
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
  std::vector<Term> terms_;
  mutable at::Tensor figures_;  // [6] sums over the pairs since the last take_figures(), float64 on their device
  mutable std::int64_t count_ = 0;
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
  std::vector<Term> terms = terms_of(config, inputs);
  return terms.empty() ? nullptr : std::make_shared<Dpo>(config, std::move(terms));
}

}  // namespace components::loss::dpo
