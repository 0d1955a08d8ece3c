#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/autocast.h"
#include "runner/core/diagnostics.h"
#include "runner/train/experiment/grad_scaler.h"

namespace runner::resolve {
struct Recipe;
}
namespace runner::sections::precision {
struct Config;
}
namespace runner::train {

/// What the section `precision` means for a training step.
struct Precision {
  components::AutocastOptions autocast;
  GradScaler::Options scaler;
};
Precision read_precision(const sections::precision::Config& config);

/// Gives the model's blocks the number formats of the section `precision`: weights of `bf16-true` become bfloat16, and
/// hooks convert inputs between blocks of different formats, on that kind of device. Errors for a pattern that matches
/// no block, and for weights shared by two blocks of different formats.
void apply_precision(const resolve::Recipe& recipe, c10::DeviceType device, components::model::Model& model,
                     core::Diagnostics& diagnostics);

/// The parameters that apply_precision() has in bfloat16, by name: to make them so, with no float32 copy before. Says
/// nothing of what is wrong with the section.
std::set<std::string> bf16_weights(const resolve::Recipe& recipe, const components::model::Model& model);

/// Under which autocast each block of the model runs. Says nothing of what is wrong with the section.
std::vector<components::AutocastOptions::Type> autocast_of_blocks(const resolve::Recipe& recipe,
                                                                  const components::model::Model& model);

/// Whether products in bfloat16 are computed in it: a CPU that is no faster with it multiplies in float32.
bool multiplies_bf16(c10::Device device);

/// Parameters that the passes only multiply in a smaller type, by name, and that type: their gradients are of it, too.
/// `autocast`: that of each block.
std::map<std::string, c10::ScalarType> lowered_weights(const components::model::Model& model,
                                                       const std::vector<components::AutocastOptions::Type>& autocast,
                                                       c10::Device device);

/// `precision.matmul_precision`, for the whole process.
void set_matmul_precision(const sections::precision::Config& config);

}  // namespace runner::train
