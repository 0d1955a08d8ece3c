#pragma once

namespace runner::cli {

/// A complete recipe, for checking sections that come without one.
inline constexpr const char* kMinimalRecipe =
    "model: {type: mlp, hidden: []}\n"
    "data: {train: {type: synthetic, task: regression, num_samples: 1}}\n"
    "loss: mse\n"
    "optimizer: {type: sgd, lr: 1.0}\n"
    "training: {max_steps: 1, micro_batch_size: 1}\n";

}  // namespace runner::cli
