#pragma once

#include <memory>
#include <span>

#include "runner/cli/group/import/launch/launcher.h"
#include "runner/core/diagnostics.h"

namespace runner::cli {

/// An error where the words are a command `accelerate estimate-memory`, which has a command of its own here.
void refuse_estimate(std::span<const ShellWord> words, const std::shared_ptr<const core::Source>& source,
                     core::Diagnostics& diagnostics);

}  // namespace runner::cli
