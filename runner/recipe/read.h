#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::recipe {

/// Limits against hostile input; the message names the exceeded one. And how YAML is read.
struct Limits {
  std::int64_t file_bytes_max = 4 << 20;
  int nesting_depth_max = 64;
  std::int64_t nodes_max = 100'000;       ///< values of one file, and of the composed recipe
  std::int64_t alias_nodes_max = 50'000;  ///< values that aliases and ${...} may add
  std::int64_t text_bytes_max = 1 << 20;  ///< one text after ${...} was replaced
  int include_depth_max = 16;             ///< extends within extends
  int includes_max = 256;
  int interpolation_depth_max = 32;
  bool yaml_1_1 = false;  ///< take `<<`, and `yes`, `no`, `on`, `off` as booleans, which other programs' files have
};

/// YAML text (1.2 core schema scalars, anchors, no tags, duplicate keys refused) to a located tree. Nothing when there
/// were errors. Never throws or crashes on any bytes: the fuzz target drives this function and `compose`.
std::optional<core::Node> read_yaml(std::shared_ptr<const core::Source> source, const Limits& limits,
                                    core::Diagnostics& diagnostics);

/// JSON text to a located tree (schema fragments, resolved recipes, Jsonnet's output).
std::optional<core::Node> read_json(std::shared_ptr<const core::Source> source, const Limits& limits,
                                    core::Diagnostics& diagnostics);

/// A value as it would be written in a recipe: `1e-4`, `true`, `[1, 2]`, `{type: adamw}`, `text`. For `--set`.
std::optional<core::Node> read_value(std::shared_ptr<const core::Source> source, const std::string& text,
                                     core::Diagnostics& diagnostics);

}  // namespace runner::recipe
