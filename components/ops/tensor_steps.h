#pragma once

#include <array>

#include "components/kernels/optimizer.h"
#include "components/tensor/tensors.h"

namespace components::kernels {

/// What components/kernels/optimizer.h does, by plain operations: for parameters of a device that its loops cannot
/// read. The same arithmetic, rounded in other places.
struct TensorSlice {
  at::Tensor parameter, gradient;
  std::array<at::Tensor, 3> state = {};  ///< in the order of the function's comment; unused ones may be undefined
};

void adagrad(const TensorSlice& slice, const AdagradStep& step);
void rmsprop(const TensorSlice& slice, const RmspropStep& step);
void adadelta(const TensorSlice& slice, const AdadeltaStep& step);
void adamax(const TensorSlice& slice, const AdamaxStep& step);
void moments(const TensorSlice& slice, const MomentStep& step);
void rprop(const TensorSlice& slice, const RpropStep& step);
void asgd(const TensorSlice& slice, const AsgdStep& step);
void lion(const TensorSlice& slice, const LionStep& step);
void schedule_free(const TensorSlice& slice, const ScheduleFreeStep& step);
SquareSums lamb_moments(const TensorSlice& slice, const LambStep& step);
void lamb_apply(const TensorSlice& slice, const LambStep& step, float rate);

}  // namespace components::kernels
