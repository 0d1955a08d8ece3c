#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/recipe/compose.h"
#include "runner/recipe/read.h"
#include "runner/sweep/spec/sweep.h"

namespace tests {

/// A recipe that could be trained, with `sweep` as its section and this many steps; what is wrong goes to
/// `diagnostics`.
inline std::optional<runner::sweep::Sweep> read_sweep(const std::string& sweep, runner::core::Diagnostics& diagnostics,
                                                      const std::string& max_steps) {
  const std::string text = R"(run_name: tiny
vars: {width: 8, steps: 2, other: 1}
model: {type: mlp, hidden: ["${vars.width}"]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {micro_batch_size: 32, max_steps: )" +
                           max_steps + "}\nsweep:\n" + sweep;
  const auto source = std::make_shared<const runner::core::Source>(
      runner::core::Source{"recipe.yaml", text, runner::core::Source::Kind::kFile});
  auto tree = runner::recipe::read_yaml(source, {}, diagnostics);
  if (!tree) return std::nullopt;
  runner::recipe::Composed open{*std::move(tree), {source}, "."};
  return runner::sweep::Sweep::read("recipe.yaml", std::move(open), diagnostics);
}

inline std::optional<runner::sweep::Sweep> read_sweep(const std::string& sweep, runner::core::Diagnostics& diagnostics,
                                                      int max_steps = 2) {
  return read_sweep(sweep, diagnostics, std::to_string(max_steps));
}

}  // namespace tests
