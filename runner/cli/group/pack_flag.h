#pragma once

#include <optional>
#include <string>

#include "runner/cli/session.h"
#include "runner/pretrained/packed/pack.h"

namespace runner::cli {

/// A flag whose word says how weights are packed: `nf4`, with scales in 8 bits `nf4-double`, `int8`. "": not given.
void add_pack_flag(Command command, const char* flag, std::string& word, const char* help);
/// What such a word means; nothing for "".
std::optional<pretrained::PackForm> pack_form(const std::string& word);

}  // namespace runner::cli
