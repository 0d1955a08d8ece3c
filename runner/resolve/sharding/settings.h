#pragma once

#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"
#include "runner/resolve/sharding/words.h"

namespace runner::resolve {

/// How words are read.
struct ShardingOptions {
  /// What has no equivalent is an error in a recipe; an import warns, and leaves it out.
  core::Severity missing = core::Severity::kError;
  /// Notices of what a word is read as. Words without an effect have theirs either way.
  bool tells = true;
  /// Values without a location, which an import writes for what a file does not say, give way.
  bool replaces_defaults = false;
};

/// Sets what the words come to in `recipe`, where a value may stand already: the same is fine, another one an error
/// that names both places; `auto` takes the recipe's. Without a strategy FSDP's is FULL_SHARD. `launch` of the recipe
/// says of how many machines a hybrid strategy is.
void apply_fsdp(const std::vector<ShardingWord>& words, core::Node& recipe, const ShardingOptions& options,
                const registry::Registry& registry, core::Diagnostics& diagnostics);
/// The same of DeepSpeed. Without a stage nothing is sharded.
void apply_deepspeed(const std::vector<ShardingWord>& words, core::Node& recipe, const ShardingOptions& options,
                     const registry::Registry& registry, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
