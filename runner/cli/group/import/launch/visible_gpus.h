#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/location.h"
#include "runner/core/node.h"

namespace runner::cli {

/// Adds to a launcher's options what `CUDA_VISIBLE_DEVICES=VALUE` before the command says: which GPUs, and how many
/// processes where the command starts one for each that it sees (`counts`). Tells what it leaves out.
void take_visible_gpus(const std::string& value, bool counts, const core::Location& at, core::Node& launcher,
                       core::Diagnostics& diagnostics);

}  // namespace runner::cli
