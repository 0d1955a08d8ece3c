#pragma once

#include <optional>
#include <string_view>

#include "components/model/model.h"
#include "components/tensor/autocast.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/train/experiment/grad_scaler.h"

namespace runner::train {

/// What the section `precision` asks of a training step.
struct Precision {
  components::AutocastOptions autocast;
  GradScaler::Options scaler;
};
Precision read_precision(const core::Node& section);

/// Gives the model's blocks the number formats that the section `precision` asks for: weights of `bf16-true` become
/// bfloat16, and where blocks differ or take other inputs than arrive, hooks convert at their borders. Errors for a
/// pattern that matches no block, and for weights that two blocks share and would keep in different formats.
void apply_precision(const core::Node& section, components::model::Model& model, core::Diagnostics& diagnostics);

/// `precision.matmul_precision`, for the whole process.
void set_matmul_precision(const core::Node& section);

}  // namespace runner::train
