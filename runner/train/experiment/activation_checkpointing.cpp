#include "runner/train/experiment/activation_checkpointing.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "generated/section/activation_checkpointing.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

using components::block::Block;
using components::model::Model;
using components::model::RecomputedBlocks;
using sections::activation_checkpointing::Mode;

/// The output of a block that reads ids alone is as large as what recomputing it would save. A mask or ids beside
/// activations change nothing.
bool reads_ids(const Block& block) {
  return std::none_of(block.inputs().begin(), block.inputs().end(),
                      [](const components::TensorSpec& port) { return components::is_floating(port.dtype); });
}

/// Cut into segments; a run of neighbours ends where a block cannot join, and at the last block.
std::vector<RecomputedBlocks> segments(const Model& model, std::size_t length) {
  std::vector<RecomputedBlocks> found;
  bool open = false;
  for (std::size_t i = 0; i + 1 < model.blocks().size(); ++i) {
    if (reads_ids(*model.blocks()[i])) {
      open = false;
      continue;
    }
    if (!open || found.back().count == length) found.push_back({.first = i, .count = 0});
    ++found.back().count;
    open = true;
  }
  return found;
}

}  // namespace

void apply_activation_checkpointing(const resolve::Recipe& recipe, Model& model, core::Diagnostics& diagnostics) {
  const auto& config = *recipe.activation_checkpointing;
  if (config.mode == Mode::kNone) return;
  std::vector<RecomputedBlocks> recomputed;
  std::int64_t position = 0;
  for (RecomputedBlocks& segment : segments(model, static_cast<std::size_t>(config.segment))) {
    segment.save_matmuls = config.mode == Mode::kSelective;
    if (position++ % config.every == 0) recomputed.push_back(segment);
  }
  if (recomputed.empty()) {
    diagnostics.error(
        recipe.location("activation_checkpointing"),
        "this model has no block to recompute: the last one and blocks that read ids are never recomputed",
        "leave activation_checkpointing out; a smaller training.micro_batch_size "
        "needs less memory");
    return;
  }
  model.set_recomputed(recomputed);
}

}  // namespace runner::train
