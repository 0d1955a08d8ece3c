#pragma once

#include <optional>

#include "components/tokenizer/chat/chat_format.h"
#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace components::tokenizer {

/// The format that a recipe writes as `chat_format`: the name of one, or a mapping of texts, whose keys are those of
/// ChatFormat; `type` names the format that they change. Nothing when an error was reported: a name, a key or a value
/// that is none, or no text before a turn of the user or the assistant.
std::optional<ChatFormat> written_chat_format(const runner::core::Node& node, runner::core::Diagnostics& diagnostics);

}  // namespace components::tokenizer
