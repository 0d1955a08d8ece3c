#pragma once

#include <string>
#include <vector>

#include "runner/cli/data/tokenize.h"
#include "runner/core/node.h"

namespace runner::cli {

/// How far a call of tokenize() is, as its file of progress, or at last its description, has it.
struct TokenizeState {
  Documents::Place place;
  std::vector<FileState> inputs;  ///< that were opened
  TokenizeCounts counts;
  std::vector<std::int64_t> shards;  ///< tokens of each that is complete
  std::int64_t tokens_in_part = 0;
  bool is_whole = false;  ///< nothing is left but to give the files their names
  bool replaces = false;  ///< what has their names is replaced: --force was given
};

/// What the result depends on beside the contents of the inputs. RunError when the tokenizer's file cannot be read.
core::Node settings_of(const TokenizeRequest& request, const components::tokenizer::Tokenizer& tokenizer);

core::Node to_node(const TokenizeState& state, const core::Node& settings);
/// RunError names the file when it is no such state.
TokenizeState read_state(const core::Node& node, const std::string& file);

/// The first key of the settings in which two differ; "" when none does.
std::string difference(const core::Node& ours, const core::Node& theirs);

}  // namespace runner::cli
