#pragma once

#include <string>

#include "components/model/model.h"

namespace runner::checkpoint {

/// The first tensor that differs between a checkpoint and a model, as `wte.weight is [256, 32] there and [256, 64] in
/// the model`; "" when every name, shape and type is the same. Reads headers only; the model may be on the meta device.
std::string first_mismatch(const std::string& checkpoint, const components::model::Model& model);

}  // namespace runner::checkpoint
