// N: targets that count   C: features   V: classes (the vocabulary, for sequences)

#include <ATen/ops/ne.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/loss/figure_sums.h"
#include "components/loss/loss.h"
#include "components/loss/rows/distilled_rows.h"
#include "components/tensor/teacher.h"
#include "components/tensor/tensors.h"
#include "generated/loss/distillation.h"  // Config; declares make()

namespace components::loss::distillation {
namespace {

/// What a model leaves for the loss, a row for each target.
RowLogits rows_of(const at::Tensor* output, const at::Tensor* hidden, const at::Tensor* projection) {
  const at::Tensor& rows = output != nullptr ? *output : *hidden;
  return {rows.reshape({-1, rows.size(-1)}), output != nullptr ? at::Tensor() : *projection};
}

class Distillation final : public Loss {
 public:
  explicit Distillation(const Config& config) : config_(config) {}

  std::vector<std::string> reads() const override { return {kOutput, kTarget, kTeacherOutput}; }
  std::int64_t count(const TensorMap& batch) const override {
    return at::ne(batch.at(kTarget), kPadTarget).sum().item<std::int64_t>();
  }
  bool count_is_static() const override { return true; }
  std::optional<std::int64_t> ignore_index() const override { return kPadTarget; }

  std::vector<std::string> figure_names() const override { return {"distillation/teacher", "distillation/target"}; }
  Figures take_figures() const override { return figures_.take(figure_names().size()); }

 protected:
  at::Tensor sum_of(const TensorMap& tensors) const override { return sum_of_rows(tensors); }
  at::Tensor sum_projected(const TensorMap& tensors, double /*gradient*/) const override {
    return sum_of_rows(tensors);
  }

 private:
  at::Tensor sum_of_rows(const TensorMap& tensors) const {
    const at::Tensor* output = tensors.find(kProjection) != nullptr ? nullptr : &tensors.at(kOutput);
    RowLogits student = rows_of(output, tensors.find(kHidden), tensors.find(kProjection));
    const at::Tensor target_N = tensors.at(kTarget).reshape({-1});
    if (student.rows_NC.is_meta()) return distilled_rows(student, student.detached(), target_N, options()).sum;
    RowLogits teacher =
        rows_of(tensors.find(kTeacherOutput), tensors.find(kTeacherHidden), tensors.find(kTeacherProjection));
    const at::Tensor place_N = at::ne(target_N, kPadTarget).nonzero().squeeze(1);
    student.rows_NC = student.rows_NC.index_select(0, place_N);
    teacher.rows_NC = teacher.rows_NC.index_select(0, place_N);
    const DistilledSums sums = distilled_rows(student, teacher, target_N.index_select(0, place_N), options());
    figures_.add(sums.parts, {place_N.size(0), place_N.size(0)});
    return sums.sum;
  }

  DistillOptions options() const { return {config_.alpha, config_.temperature}; }

  Config config_;
  mutable FigureSums figures_;
};

}  // namespace

std::shared_ptr<Loss> make(const Config& config, const Inputs& inputs) {
  if (!inputs.have({kOutput, kTarget})) return nullptr;
  const TensorSpec &output = *inputs.find(kOutput), &target = *inputs.find(kTarget);
  const bool fits = target.dtype == Dtype::kInt64 && output.dtype == Dtype::kFloat32 &&
                    output.shape.size() == target.shape.size() + 1 &&
                    std::equal(target.shape.begin(), target.shape.end(), output.shape.begin());
  if (fits) return std::make_shared<Distillation>(config);
  inputs.diagnostics.error(inputs.block.location(),
                           "distillation compares the logits of classes or tokens, but the target is " +
                               to_text(target) + ", and the model returns " + to_text(output),
                           "use data whose targets are classes, or texts, and a model that returns logits of them");
  return nullptr;
}

}  // namespace components::loss::distillation
