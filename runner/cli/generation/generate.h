#pragma once

#include <string>

#include "runner/cli/generation/generation_flags.h"
#include "runner/cli/generation/prompts.h"
#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

struct GenerateFlags {
  RecipeFlags recipe;
  GenerationFlags generation;
  PromptFlags prompts;
  engine::GenerateRequest request;
  std::string truncate, format, output;
};

/// `roux generate`: a text for each prompt, by the weights of a checkpoint or of a Transformers folder.
void generate(Session& session, GenerateFlags& flags);

}  // namespace runner::cli
