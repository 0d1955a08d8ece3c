#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runner/core/node.h"

namespace runner::resolve {

/// A field of FSDP's or DeepSpeed's configuration, and what roux does with it.
struct ShardingField {
  enum class Use {
    kCopied,    ///< its value is that of `key`
    kRead,      ///< `key` follows from it, as `note` says
    kNoEffect,  ///< of a way of doing that roux does not have, or always has: `note` says
    kRefused,   ///< there is no such thing here; `note` is what to do instead
  };
  const char* name;  ///< `zero_optimization.stage` within sections
  Use use;
  const char* key;  ///< of a recipe; "" for none
  const char* note;
};

/// Fields of Accelerate's FullyShardedDataParallelPlugin, `fsdp_config` of the Trainer too, without `fsdp_` before
/// them.
std::span<const ShardingField> fsdp_fields();
/// Fields of Accelerate's DeepSpeedPlugin: `deepspeed_config` of its configuration.
std::span<const ShardingField> deepspeed_plugin_fields();
/// The keys of DeepSpeed's own JSON.
std::span<const ShardingField> deepspeed_fields();

/// Null where there is no such field.
const ShardingField* find_field(std::span<const ShardingField> fields, std::string_view name);

/// Whether a setting asks for nothing: null, `false`, `none`, `auto`, a mapping with `device: none` or `enabled:
/// false`.
bool asks_nothing(const core::Node& value);

/// The tables as sections of a page.
std::string sharding_tables();

}  // namespace runner::resolve
