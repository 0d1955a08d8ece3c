#pragma once

#include <cstdint>

#include "components/part/rotation.h"
#include "runner/core/node.h"

namespace components::model::transformers {

/// What the checked `rope_parameters` of a configuration mean for heads of `head` features. `positions`: its longest
/// sequence, which a scaling counts from that says nothing else.
part::RotaryOptions rotary_of(const runner::core::Node& rope, std::int64_t head, std::int64_t positions);

}  // namespace components::model::transformers
