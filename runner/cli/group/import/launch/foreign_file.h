#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"

namespace runner::cli {

/// YAML or JSON as the programs of Python read it, merge keys (`<<`) included. Nothing after an error.
std::optional<core::Node> read_foreign(const std::shared_ptr<const core::Source>& source,
                                       core::Diagnostics& diagnostics);

/// The mapping of a file that an argument names, which lies there or beside the file of the argument. Nothing after an
/// error, whose message begins with `argument`.
std::optional<core::Node> read_named_file(const core::Node& path, const std::string& argument,
                                          core::Diagnostics& diagnostics);

}  // namespace runner::cli
