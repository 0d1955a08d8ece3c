#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "components/tokenizer/tokenizer.h"
#include "runner/cli/session.h"

// Shared by the subcommands of `roux tokenizer`.

namespace runner::cli {

/// Reads it, or fails the session.
std::shared_ptr<const components::tokenizer::Tokenizer> tokenizer_or_fail(const std::string& path, Session& session);

/// All of standard input, up to a gigabyte. Throws RunError.
std::string standard_input();

/// A token for people: between quotes, escaped.
std::string shown_token(const components::tokenizer::Tokenizer& tokenizer, std::int32_t id);

}  // namespace runner::cli
