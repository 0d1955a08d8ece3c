#pragma once

#include <string>

#include "runner/core/result.h"

namespace runner::cli {

/// `optimizer.lr=1e-4,3e-4`, `model.n_layer=2..6`, `training.clip_grad_norm=0..1:0.25`, `optimizer.lr=1e-5..1e-2:log`
/// as what `--set` puts under `sweep.parameters`.
core::Result<std::string> sweep_override(const std::string& text);

}  // namespace runner::cli
