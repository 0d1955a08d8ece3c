#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/words/reader.h"

namespace runner::cli {

/// A word of a shell script, without its quotes.
struct ShellWord {
  std::string text;
  int line = 1;
  bool is_array = false;  ///< `"${NAME[@]}"`
};

/// A value of a command line, where Python writes True and None.
core::Node value_of_argument(const std::shared_ptr<const core::Source>& source, const std::string& text,
                             const core::Location& location);

/// The flags of `torchrun`, `deepspeed` or `accelerate launch` among the words before a script: a mapping of options of
/// Accelerate, and of keys of a recipe such as `launch.min_machines`. Empty without a launcher. A notice for a flag
/// that means nothing here; an error for one that the launcher does not have, or that has no equivalent.
core::Node read_launcher(std::span<const ShellWord> words, const std::shared_ptr<const core::Source>& source,
                         core::Diagnostics& diagnostics);

/// Sets what the flags come to in `recipe`. A value there that was not written gives way; one of precision and of
/// batches that was stays, as the script's arguments go before its launcher's, with a notice. Any other that differs is
/// an error.
///
/// is_trainer  the script is one of the Trainer, whose arguments decide on precision and accumulation: `rows` tells
///             which flags have no effect beside them
void take_launcher(const core::Node& launcher, bool is_trainer, core::Node& recipe, std::vector<words::Row>& rows,
                   core::Diagnostics& diagnostics);

}  // namespace runner::cli
