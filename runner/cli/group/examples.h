#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// The recipes that come with roux: `recipes` in share/roux of an installation, or of the checkout that the program was
/// built in. Nothing when the session failed: there is no such folder.
std::optional<std::string> examples_or_fail(Session& session);

struct Example {
  std::string path;     ///< within that folder: examples/spirals.yaml
  std::string summary;  ///< first sentence of the comment at its top; "" without one
};

/// The quickstart and the recipes of examples/ and finetune/, in the order of their names.
std::vector<Example> examples_in(const std::string& folder);

/// Every file of `folder` and below, as a path within it, in the order of their names.
std::vector<std::string> files_below(const std::string& folder);

}  // namespace runner::cli
