#pragma once

#include "runner/core/diagnostics.h"
#include "runner/pretrained/facts.h"

namespace runner::pretrained {

/// Rules between the fields of a mixture of experts, each of which has been checked by itself; nothing of other models.
void check_experts(const Facts& facts, core::Diagnostics& diagnostics);

}  // namespace runner::pretrained
