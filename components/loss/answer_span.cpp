// B: windows   T: positions

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "components/loss/loss.h"
#include "components/tensor/tensors.h"
#include "generated/loss/answer_span.h"  // Config; declares make()

namespace components::loss::answer_span {
namespace {

class AnswerSpan final : public Loss {
 public:
  explicit AnswerSpan(bool has_mask) : has_mask_(has_mask) {}

  std::vector<std::string> reads() const override {
    std::vector<std::string> names = {kOutput, kTarget};
    if (has_mask_) names.emplace_back(kAttentionMask);
    return names;
  }
  std::int64_t count(const TensorMap& batch) const override { return batch.at(kTarget).size(0); }
  bool count_is_static() const override { return true; }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override {
    at::Tensor logits_BT2 = tensors.at(kOutput).to(at::kFloat);
    if (has_mask_) {
      const at::Tensor padding_BT1 = tensors.at(kAttentionMask).to(at::kBool).logical_not().unsqueeze(2);
      logits_BT2 = logits_BT2.masked_fill(padding_BT1, -std::numeric_limits<double>::infinity());
    }
    return at::cross_entropy_loss(logits_BT2, tensors.at(kTarget), {}, at::Reduction::Sum) * kHalf;
  }

 private:
  static constexpr double kHalf = 0.5;
  bool has_mask_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config&, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec &output = *inputs.find(kOutput), &target = *inputs.find(kTarget);
  const runner::core::Location& location = inputs.block.location();
  if (target.dtype != Dtype::kInt64 || target.shape != std::vector<std::int64_t>{kBatch, 2}) {
    inputs.diagnostics.error(
        location, "answer_span needs the first and last token of each answer, but the target is " + to_text(target),
        "use data of type jsonl whose records have question, context and answers");
    return nullptr;
  }
  if (output.shape != std::vector<std::int64_t>{kBatch, kTime, 2}) {
    inputs.diagnostics.error(location,
                             "answer_span needs two logits for each token, but the model returns " + to_text(output),
                             "give it such a head: init_from: {path: FOLDER, head: question_answering}");
    return nullptr;
  }
  return std::make_shared<AnswerSpan>(inputs.find(kAttentionMask) != nullptr);
}

}  // namespace components::loss::answer_span
