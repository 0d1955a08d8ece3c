// N: rows   C: features   V: classes   n: rows of a chunk

#include "components/loss/rows/distilled_rows.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <optional>

#include "components/loss/rows/logits_chunks.h"
#include "components/loss/rows/row_losses.h"

namespace components::loss {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// In the type of its products.
RowLogits as_computed(const RowLogits& logits) {
  if (!logits.project_VC.defined()) return logits;
  const at::ScalarType type = product_type(logits.rows_NC);
  return {logits.rows_NC.to(type), logits.project_VC.to(type)};
}

at::Tensor chunk_of(const RowLogits& logits, std::int64_t first, std::int64_t count) {
  const at::Tensor rows_nC = logits.rows_NC.narrow(0, first, count);
  return (logits.project_VC.defined() ? at::linear(rows_nC, logits.project_VC) : rows_nC).to(at::kFloat);
}

/// The sums of a chunk, and in `dlogits_nV` the gradient of the weighted one.
at::Tensor sums_of(const at::Tensor& student_nV, const at::Tensor& teacher_nV, const at::Tensor& target_n,
                   const DistillOptions& o, at::Tensor& dlogits_nV) {
  const at::Tensor soft_nV = at::log_softmax(student_nV / o.temperature, 1);
  const at::Tensor wanted_nV = at::log_softmax(teacher_nV / o.temperature, 1), share_nV = wanted_nV.exp();
  const at::Tensor of_teacher = (share_nV * (wanted_nV - soft_nV)).sum(at::kDouble) * (o.temperature * o.temperature);
  const at::Tensor hard_nV = at::log_softmax(student_nV, 1), target_n1 = target_n.unsqueeze(1);
  const at::Tensor of_target = -hard_nV.gather(1, target_n1).sum(at::kDouble);
  if (dlogits_nV.defined()) {
    dlogits_nV.copy_((soft_nV.exp() - share_nV) * (o.alpha * o.temperature));
    dlogits_nV.add_(hard_nV.exp(), 1.0 - o.alpha);
    dlogits_nV.scatter_(1, target_n1, dlogits_nV.gather(1, target_n1) - (1.0 - o.alpha));
  }
  return at::stack({of_teacher, of_target});
}

/// Of one row at least; no more logits than kLogitsBytes where they are made here.
std::int64_t rows_at_a_time(const RowLogits& student, std::int64_t classes) {
  if (!student.project_VC.defined()) return std::max<std::int64_t>(1, student.rows_NC.size(0));
  return std::max<std::int64_t>(1, kLogitsBytes / (classes * static_cast<std::int64_t>(sizeof(float))));
}

class DistilledRows final : public torch::autograd::Function<DistilledRows> {
 public:
  /// `projection`: nothing where the rows are the logits; LibTorch takes no undefined tensor.
  static variable_list forward(AutogradContext* context, const at::Tensor& rows_NC,
                               const std::optional<at::Tensor>& projection, const RowLogits& of_teacher,
                               const at::Tensor& target_N, const DistillOptions& o, bool rows_learn,
                               bool project_learns) {
    const at::Tensor project_VC = projection.value_or(at::Tensor());
    const RowLogits student = as_computed({rows_NC, project_VC}), teacher = as_computed(of_teacher);
    const bool projects = project_VC.defined();
    const std::int64_t classes = projects ? project_VC.size(0) : rows_NC.size(1);
    at::Tensor parts = at::zeros({2}, rows_NC.options().dtype(at::kDouble)), drows_NC, dproject_VC;
    if (rows_learn) drows_NC = at::empty_like(rows_NC);
    if (project_learns) dproject_VC = at::zeros(project_VC.sizes(), project_VC.options().dtype(at::kFloat));
    for_chunks(rows_NC.size(0), rows_at_a_time(student, classes), [&](std::int64_t first, std::int64_t count) {
      const at::Tensor logits_nV = chunk_of(student, first, count);
      at::Tensor dlogits_nV;
      if (rows_learn || project_learns) dlogits_nV = at::empty_like(logits_nV);
      parts.add_(sums_of(logits_nV, chunk_of(teacher, first, count), target_N.narrow(0, first, count), o, dlogits_nV));
      if (!projects) {
        if (rows_learn) drows_NC.narrow(0, first, count).copy_(dlogits_nV);
        return;
      }
      const at::Tensor low_nV = dlogits_nV.defined() ? dlogits_nV.to(student.rows_NC.scalar_type()) : dlogits_nV;
      if (rows_learn) drows_NC.narrow(0, first, count).copy_(low_nV.mm(student.project_VC));
      if (project_learns) dproject_VC.add_(low_nV.t().mm(student.rows_NC.narrow(0, first, count)));
    });
    if (project_learns) dproject_VC = dproject_VC.to(project_VC.scalar_type());
    context->saved_data["rows"] = drows_NC;
    context->saved_data["project"] = dproject_VC;
    const at::Tensor sum = parts.select(0, 0) * o.alpha + parts.select(0, 1) * (1.0 - o.alpha);
    context->mark_non_differentiable({parts});
    return {sum.to(at::kFloat), parts};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list found;
    for (const char* input : {"rows", "project"}) {
      found.push_back(context->saved_data[input].toTensor());
      if (found.back().defined()) found.back().mul_(gradients[0]);
    }
    context->saved_data.clear();
    found.resize(7);
    return found;
  }
};

}  // namespace

DistilledSums distilled_rows(const RowLogits& student, const RowLogits& teacher, const at::Tensor& target_N,
                             const DistillOptions& options) {
  const auto learns = [](const at::Tensor& tensor) {
    return tensor.defined() && torch::autograd::compute_requires_grad(tensor);
  };
  const auto projection = student.project_VC.defined() ? std::make_optional(student.project_VC) : std::nullopt;
  const variable_list sums = DistilledRows::apply(student.rows_NC, projection, teacher.detached(), target_N, options,
                                                  learns(student.rows_NC), learns(student.project_VC));
  return {sums[0], sums[1]};
}

}  // namespace components::loss
