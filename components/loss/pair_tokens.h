#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "components/loss/loss.h"

// B: pairs   T: positions of a row   N: tokens with a probability

namespace components::loss {

/// A number for each completion of pairs, [B] each.
struct OfPairs {
  at::Tensor chosen_B, rejected_B;
};

/// The tokens of a batch of pairs that a loss asks the model about: those of the completions and, where it learns whole
/// chosen sequences, those of their prompts but the first, which nothing predicts.
class PairTokens {
 public:
  /// `batch` has kTarget and kRejectedAt, and for the prompts kInput.
  explicit PairTokens(const TensorMap& batch, bool with_prompts = false);

  /// [B, T] float32: the logarithm of each one's probability by what the model left in `tensors`, 0 elsewhere; on the
  /// meta device of another shape.
  at::Tensor logps_BT(const TensorMap& tensors) const;
  /// Their sums over each completion. `ld_alpha`: the weight of tokens behind the length of the shorter one.
  OfPairs sums(const at::Tensor& logps_BT, std::optional<double> ld_alpha = std::nullopt) const;
  /// sums() over the number of tokens, of which a prompt that fills max_seq_len leaves none.
  OfPairs means(const OfPairs& sums) const;
  /// Scalar: the sum over the chosen sequences, with their prompts where there are any.
  at::Tensor chosen_sum(const at::Tensor& logps_BT) const;

  /// How many tokens chosen_sum() has, of all pairs.
  static std::int64_t chosen_count(const TensorMap& batch, bool with_prompts = false);

 private:
  OfPairs lengths() const;
  at::Tensor of(const at::Tensor& rows) const;

  at::Tensor target_BT_, is_completion_BT_, is_chosen_BT_, place_N_, target_N_;
};

/// What losses of pairs measure: rewards and log-probabilities.
std::vector<std::string> pair_figure_names();
/// Those of a batch, [6] float64 sums.
at::Tensor pair_figures(const OfPairs& rewards, const OfPairs& logps);

/// False when an error was reported: the data are no pairs, or the model returns no logits for each of their tokens.
/// `loss`: its name. `records`: what it needs, in the data's words, and `hint` how to get them.
bool are_pairs(const std::string& loss, const Inputs& inputs,
               const char* records = "pairs of a chosen and a rejected completion",
               const char* hint = "use data of type jsonl whose records have prompt, chosen and rejected");

}  // namespace components::loss
