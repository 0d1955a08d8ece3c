#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

// Shared by what `roux config import` makes a recipe of.

namespace runner::cli {

/// A recipe in the making.
class ImportDraft {
 public:
  /// Sets a key of the recipe, `section.key` or, of the sets of `data`, `data.train`.
  void put(const std::string& path, core::Node value);
  /// As recipes are usually written, the model first.
  core::Node ordered() const;

 private:
  core::Node recipe_ = core::Node::mapping();
};

/// False for null, `false`, an empty text, list or mapping: of no effect in most configurations.
bool asks_for_something(const core::Node& value);

/// Sets what `fsdp`, `fsdp_config` and `deepspeed` of a Trainer's arguments come to. The optimizer and the schedule of
/// DeepSpeed's file take the place of those that are a default there; what is not there is left out, with a warning.
void take_sharding(const core::Node& config, core::Node& recipe, core::Diagnostics& diagnostics);

/// A folder that is here, or OWNER/NAME as a name of the Hub.
std::string model_path(const std::string& name);

/// `95%`, to a tenth, of a part of 1.
std::string percent_of(double part);

/// The sets as one block, each with `split`, which may be "".
core::Node joined_sets(std::vector<core::Node> sets, const std::string& split);

/// A word of another program and of roux.
using ImportWords = std::pair<const char*, const char*>;

/// What roux calls a word. An error and nothing for one that is not in `words`.
std::optional<std::string> word_of(const char* key, const core::Node& value, std::span<const ImportWords> words,
                                   core::Diagnostics& diagnostics);

/// `optim` of Transformers' Trainer, and names of Axolotl.
std::span<const ImportWords> imported_optimizers();
/// The optimizer's type; tells of 8-bit states, which have 32 bits here.
std::optional<std::string> optimizer_of(const char* key, const core::Node& value, core::Diagnostics& diagnostics);

}  // namespace runner::cli
