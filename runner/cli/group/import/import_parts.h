#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"
#include "runner/words/table.h"

// Shared by what `roux config import` makes a recipe of.

namespace runner::cli {

/// Sets what `fsdp`, `fsdp_config` and `deepspeed` of a Trainer's arguments come to. The optimizer and the schedule of
/// DeepSpeed's file take the place of those that are a default there; what is not there is left out, with a warning,
/// and `rows` say so.
void take_sharding(const core::Node& config, core::Node& recipe, std::vector<words::Row>& rows,
                   core::Diagnostics& diagnostics);

/// The answer for a special token that a configuration names under `key`: the one of the tokenizer's folder counts, by
/// its `name` in tokenizer_config.json. An error where that folder, here or in the Hub's cache, has another one.
void compare_token(words::Reader& reader, const core::Node& token, const std::string& key, const char* name,
                   const std::string& folder);

/// Sets switches that are written as `false` where roux's default is not: of other keys `false` asks for nothing.
void keep_switches(const core::Node& config, const words::Table& table, core::Node& recipe,
                   std::vector<words::Row>& rows);

/// `95%`, to a tenth, of a part of 1.
std::string percent_of(double part);

/// What a row says of records that are held out and that the tool draws at random.
inline constexpr const char* kHeldOutText = "data.val; the last records, where the tool draws them at random";

/// How sets are mixed; without weights they follow one another.
struct SetMixture {
  std::vector<core::Node> weights;
  std::string stopping;
};

/// An error where labelled records are to be streamed, which no training of them does.
void refuse_stream_of_labels(words::Reader& reader, const core::Node& at, const std::string& key);

/// An error for each empty mapping or list in place of a number or a switch, which the tool does not take either.
///
/// recipe  that the configuration comes to: what its blocks are decides what their keys hold
void refuse_empty_numbers(const core::Node& config, const words::Table& table, const core::Node& recipe,
                          std::vector<words::Row>& rows, core::Diagnostics& diagnostics);

/// The sets as one block. Of another number of sets than of weights the mixture does not count.
core::Node joined_sets(std::vector<core::Node> sets, const SetMixture& mixture = {});

}  // namespace runner::cli
