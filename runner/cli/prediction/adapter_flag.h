#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// `--adapter DIR`.
void add_adapter_flag(Command command, std::string& adapter);

/// The change of the recipe that adds the adapter of a folder to its model; none when `adapter` is "".
std::vector<recipe::Override> adapter_change(const std::string& adapter);

/// Whether `path` is a folder of PEFT and no model.
bool is_adapter_folder(const std::string& path);

/// Where `weights` is a folder of PEFT: takes it as `adapter`, and the folder of its base model as `weights`.
/// `example`: how to name the base, for the hint. False when the session failed.
bool use_base(Session& session, std::string& weights, std::string& adapter, const std::string& example);

}  // namespace runner::cli
