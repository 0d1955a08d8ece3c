// B: pairs

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/stack.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensors.h"
#include "generated/loss/reward.h"  // Config; declares make()

namespace components::loss::reward {
namespace {

class Reward final : public Loss {
 public:
  explicit Reward(Config config) : config_(std::move(config)) {}

  std::vector<std::string> reads() const override { return {kOutput, kRejectedAt}; }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kRejectedAt).size(0); }
  bool count_is_static() const override { return true; }
  std::vector<std::string> figure_names() const override {
    return {"rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins"};
  }
  Figures take_figures() const override { return figures_.take(figure_names().size()); }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override {
    const at::Tensor rewards_B2 = tensors.at(kOutput).to(at::kFloat);
    // What follows is a few numbers for each pair, by operations that LibTorch has no shapes of.
    if (rewards_B2.is_meta()) return rewards_B2.sum();
    const at::Tensor chosen_B = rewards_B2.select(1, 0), rejected_B = rewards_B2.select(1, 1);
    const at::Tensor margin_B = chosen_B - rejected_B;
    measure(chosen_B, rejected_B, margin_B);
    const at::Tensor sum = -at::log_sigmoid(margin_B).sum();
    if (config_.center_rewards_coefficient == 0) return sum;
    return sum + (chosen_B + rejected_B).square().sum() * config_.center_rewards_coefficient;
  }

 private:
  void measure(const at::Tensor& chosen_B, const at::Tensor& rejected_B, const at::Tensor& margin_B) const {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> sums;
    for (const at::Tensor& of : {chosen_B, rejected_B, margin_B.gt(0), margin_B}) sums.push_back(of.sum(at::kDouble));
    figures_.add(at::stack(sums), std::vector<std::int64_t>(sums.size(), chosen_B.size(0)));
  }

  Config config_;
  mutable FigureSums figures_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  const runner::core::Location& location = inputs.block.location();
  if (inputs.data.find(kRejectedAt) == nullptr) {
    inputs.diagnostics.error(location,
                             "reward needs pairs of a chosen and a rejected sequence, but data.train has none",
                             "use data of type jsonl whose records have chosen and rejected");
    return nullptr;
  }
  if (!inputs.have({kOutput})) return nullptr;
  const TensorSpec& output = *inputs.find(kOutput);
  if (output.shape != std::vector<std::int64_t>{kBatch, 2}) {
    inputs.diagnostics.error(
        location, "reward needs a reward for each sequence of a pair, but the model returns " + to_text(output),
        "give it a head of one value: init_from: {path: FOLDER, head: reward}");
    return nullptr;
  }
  return std::make_shared<Reward>(config);
}

}  // namespace components::loss::reward
