#pragma once

#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::resolve {

/// The folder of Transformers that a GGUF file is unpacked into: `gguf` in core::cache_dir(), by the file's path, size
/// and time of change. It is written where it is not there yet, which is logged; blocks meanwhile, and while another
/// process writes it. Failure: of gguf::open() and gguf::unpack(), no room.
core::Result<std::string> unpacked_gguf(const std::string& file);

/// Replaces what `init_from` and `teacher` of a recipe name, where it is a GGUF file that is there, by that folder.
/// Null for what the recipe lacks.
void locate_gguf_values(core::Node* init_from, core::Node* teacher, core::Diagnostics& diagnostics);

}  // namespace runner::resolve
