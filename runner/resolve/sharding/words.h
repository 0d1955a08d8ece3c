#pragma once

#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/registry/registry.h"

namespace runner::resolve {

/// What FSDP and DeepSpeed call a setting, as it stands in a file.
struct ShardingWord {
  std::string field;    ///< as schemas/words/fsdp.json and deepspeed.json name it, sections and all: `fp16.enabled`
  std::string written;  ///< `fsdp_config.fsdp_sharding_strategy`, as messages name it
  core::Location key_location;
  core::Node value;
  std::string top = {};  ///< the key of the recipe or the imported file that it is of: `fsdp_config`
  core::Location top_location = {};
};

/// `fsdp: {...}` or the Trainer's `full_shard auto_wrap`, as words; none for what is off. `fsdp_config` may be the path
/// of its JSON, relative to the current folder or to that of the file that names it. `absent`: how a file that is not
/// there is reported.
std::vector<ShardingWord> fsdp_words(const core::Node::Entry& entry, core::Diagnostics& diagnostics,
                                     core::Severity absent = core::Severity::kError);
/// `deepspeed: {...}` or the path of its JSON, found likewise; a `deepspeed_config_file` within is read, too.
std::vector<ShardingWord> deepspeed_words(const core::Node::Entry& entry, core::Diagnostics& diagnostics,
                                          core::Severity absent = core::Severity::kError);

/// Whether a setting asks for nothing: null, `false`, `none`, `auto`, a mapping with `device: none` or `enabled:
/// false`.
bool asks_nothing(const core::Node& value);

/// The path of a file that a file names, as it stands there, or beside that file if it is only there.
std::string path_beside(const core::Node& path);

/// Whether a key at the top of a file is one of FSDP's words: `fsdp_...`, `sharding_strategy`.
bool is_fsdp_word(const std::string& key);
/// ... or of DeepSpeed's: `zero_stage`, `zero_optimization`, `offload_param_device`.
bool is_deepspeed_word(const std::string& key);

/// Takes `fsdp`, `fsdp_config`, `deepspeed`, `deepspeed_config`, `zero_stage` and their like from the top level and
/// from `training` of a recipe, with a notice.
void take_sharding_words(core::Node& recipe, const registry::Registry& registry, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
