#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/recipe/compose.h"
#include "runner/recipe/read.h"

namespace runner::recipe {

using Sources = std::vector<std::shared_ptr<const core::Source>>;

/// Like read_yaml, but returns a tree whenever the rest can still be checked: reports and omits duplicate keys, tags
/// and the like.
std::optional<core::Node> read_yaml_leniently(std::shared_ptr<const core::Source> source, const Limits& limits,
                                              core::Diagnostics& diagnostics);

/// Evaluates Jsonnet in a separate process, with limits on time and memory: the language is Turing-complete, so a file
/// may loop for ever. Imports are relative to the file that names them and join `imported`. Blocks for at most 6 s.
std::optional<core::Node> read_jsonnet(std::shared_ptr<const core::Source> source, const ComposeOptions& options,
                                       Sources& imported, core::Diagnostics& diagnostics);

/// Whether a file of that name is read as a recipe: .yaml, .yml, .json, .jsonnet, .libsonnet or no ending at all.
bool has_recipe_ending(const std::string& name);

/// Whether a word of a command line names a recipe: .yaml, .yml, .json or .jsonnet.
bool looks_like_recipe(const std::string& word);

/// Reads one file by its extension; its content must be a mapping. Adds imported files to `sources`.
std::optional<core::Node> read_document(std::shared_ptr<const core::Source> source, const ComposeOptions& options,
                                        Sources& sources, core::Diagnostics& diagnostics);

}  // namespace runner::recipe
