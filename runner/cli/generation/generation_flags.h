#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// What flags of generate that are keys of the recipe are read into.
struct GenerationFlags {
  std::map<std::string, std::string> values;  ///< by key
  std::vector<std::string> stops;
  bool do_sample = false;
};

/// A flag for each key of the recipe's section `generation`, made from its schema, and --precision and --device:
/// `--top-k 5` is `--set generation.top_k=5`, so that every error comes from the schema. Words of other programs for
/// what roux does not have are accepted, and refused in the same way. Sets `recipe.change_of`. `without`: a key that
/// gets no flag.
void add_generation_flags(Command command, GenerationFlags& flags, RecipeFlags& recipe,
                          const std::string& without = "");

/// --checkpoint and --run.
void add_weight_flags(Command command, engine::GenerateRequest& request);

/// --chat-format. `when`: what its help begins with, `With --chat: `.
void add_chat_format_flag(Command command, engine::GenerateRequest& request, const std::string& when = "");

}  // namespace runner::cli
