
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/tensor/auxiliary_loss.h"
#include "components/tensor/tensors.h"

namespace components::loss {
namespace {

class WithAuxiliary final : public Loss {
 public:
  explicit WithAuxiliary(std::shared_ptr<Loss> loss) : loss_(std::move(loss)) {}

  std::vector<std::string> reads() const override {
    std::vector<std::string> names = loss_->reads();
    names.emplace_back(kAuxiliaryLoss);
    return names;
  }
  std::int64_t count(const TensorMap& batch) const override { return loss_->count(batch); }
  std::size_t further_means() const override { return loss_->further_means() + 1; }
  std::vector<std::int64_t> further_counts(const TensorMap& batch) const override {
    std::vector<std::int64_t> all = loss_->further_counts(batch);
    const at::Tensor* mask = batch.find(kAttentionMask);
    all.push_back(mask != nullptr ? mask->sum().item<std::int64_t>() : batch.at(kInput).numel());
    return all;
  }
  bool count_is_static() const override { return loss_->count_is_static(); }
  std::optional<std::int64_t> ignore_index() const override { return loss_->ignore_index(); }
  const Loss& of_samples() const override { return loss_->of_samples(); }
  bool is_of_labels() const override { return loss_->is_of_labels(); }

  std::vector<std::string> figure_names() const override {
    std::vector<std::string> names = loss_->figure_names();
    names.emplace_back(kAuxiliaryFigure);
    return names;
  }
  Figures take_figures() const override {
    Figures all = loss_->take_figures();
    all.sums.resize(loss_->figure_names().size());
    all.counts.resize(all.sums.size());
    const Figures mine = figure_.take(1);
    all.sums.push_back(mine.sums.front());
    all.counts.push_back(mine.counts.front());
    return all;
  }

  at::Tensor reference_of(const TensorMap& tensors) const override { return loss_->reference_of(tensors); }
  bool needs_estimate() const override { return loss_->needs_estimate(); }
  at::Tensor estimate_of(const TensorMap& tensors) const override { return loss_->estimate_of(tensors); }

  void save_state(runner::core::StateWriter& writer) const override { loss_->save_state(writer); }
  void load_state(const runner::core::StateReader& reader) override { loss_->load_state(reader); }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return with_mean(loss_->parts(tensors, 1.0), tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double gradient) const override {
    return with_mean(loss_->parts(tensors, gradient), tensors);
  }

 private:
  at::Tensor with_mean(const at::Tensor& sums, const TensorMap& tensors) const {
    const at::Tensor& auxiliary = tensors.at(kAuxiliaryLoss);
    // The scalar of a loss of several means, and so of this one.
    if (sums.is_meta()) return sums + auxiliary.select(0, 0);
    const at::Tensor* mask = tensors.find(kAttentionMask);
    const at::Tensor reported = auxiliary.select(0, 1);
    const at::Tensor positions = mask != nullptr
                                     ? mask->sum().to(at::kFloat)
                                     : at::full_like(reported, static_cast<double>(tensors.at(kInput).numel()));
    {
      const at::NoGradGuard no_grad;
      figure_.add(at::stack({reported * positions, positions}).to(at::kDouble));
    }
    return at::cat({sums.reshape({-1}), (auxiliary.select(0, 0) * positions).reshape({1})});
  }

  std::shared_ptr<Loss> loss_;
  mutable FigureSums figure_;
};

}  // namespace

std::shared_ptr<Loss> with_auxiliary(std::shared_ptr<Loss> loss) {
  return std::make_shared<WithAuxiliary>(std::move(loss));
}

}  // namespace components::loss
