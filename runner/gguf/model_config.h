#pragma once

#include <string>

#include "runner/core/node.h"
#include "runner/gguf/names.h"
#include "runner/gguf/reader.h"

namespace runner::gguf {

/// The config.json of a file's model. RunError (exit status 2) names the value that is missing, wrong, or that roux
/// does not know. `name`: of the file, for messages.
core::Node config_of(const File& file, const Architecture& architecture, const std::string& name);

}  // namespace runner::gguf
