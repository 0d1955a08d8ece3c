#pragma once

#include <string>

#include "runner/cli/generation/generation_flags.h"
#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

struct ChatFlags {
  RecipeFlags recipe;
  GenerationFlags generation;
  engine::GenerateRequest request;
  std::string system;
  bool no_history = false;
};

/// The words that begin with a slash, for /help.
std::string chat_commands_help();

/// `roux chat`: a conversation with a model, line by line from standard input; answers go to standard output, all else
/// to standard error.
void chat(Session& session, ChatFlags& flags);

}  // namespace runner::cli
