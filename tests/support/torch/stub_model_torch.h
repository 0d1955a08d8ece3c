#pragma once

#include <memory>
#include <vector>

#include "components/model/model.h"
#include "components/tensor/tensors.h"

namespace tests {

/// A model of one block that holds these tensors and computes nothing.
std::unique_ptr<components::model::Model> stub_model(components::NamedTensors parameters,
                                                     components::NamedTensors buffers = {},
                                                     std::vector<components::block::Tie> ties = {});

}  // namespace tests
