#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"
#include "runner/engine/engine.h"

namespace runner::cli {

struct PromptFlags {
  std::vector<std::string> texts;  ///< --prompt
  std::string file;                ///< --prompts
  bool chat = false;
  std::string system;
};

/// The prompts of the command line, or of its file: of a .jsonl each line that is not empty is an object with `prompt`,
/// `text` or, with --chat, `messages`; of a .txt each such line is a prompt. The system message is put before messages
/// without one. Nothing when the session failed: all wrong lines are told, each with its number.
std::optional<std::vector<engine::Prompt>> read_prompts(Session& session, const PromptFlags& flags);

}  // namespace runner::cli
