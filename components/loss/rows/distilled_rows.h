#pragma once

#include <ATen/core/Tensor.h>

namespace components::loss {

/// The logits of rows: those themselves, or what they are computed from.
struct RowLogits {
  at::Tensor rows_NC;     ///< [N, C] floating; [N, V] without a projection
  at::Tensor project_VC;  ///< [V, C]; undefined: the rows are the logits

  RowLogits detached() const { return {rows_NC.detach(), project_VC.defined() ? project_VC.detach() : project_VC}; }
};

struct DistillOptions {
  double alpha = 0.5;        ///< weight of the teacher's part
  double temperature = 1.0;  ///< of both distributions
};

struct DistilledSums {
  at::Tensor sum;    ///< scalar, float32, differentiable
  at::Tensor parts;  ///< [2] float64: `T^2 KL` and the cross entropy, without `alpha`
};

/// The sum over rows of `alpha T^2 KL(teacher || student)`, of the softmax of logits / T, and of `1 - alpha` times the
/// cross entropy. Computed in chunks, so that no more than one of them is in memory of both logits where these are
/// projected; the forward pass computes the gradients. Under autocast the products have its type.
///
/// teacher    needs no gradient; C may be another
/// target_N   int64, each below V
DistilledSums distilled_rows(const RowLogits& student, const RowLogits& teacher, const at::Tensor& target_N,
                             const DistillOptions& options);

}  // namespace components::loss
