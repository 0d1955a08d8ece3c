#pragma once

#include <string>
#include <vector>

#include "runner/cli/session.h"

namespace runner::cli {

/// `--adapter DIR`, as often as asked.
void add_adapter_flag(Command command, std::vector<std::string>& adapters);

/// The change of the recipe that adds the adapters of these folders to its model; none without any.
std::vector<recipe::Override> adapter_change(const std::vector<std::string>& adapters);

/// Whether `path` is a folder of PEFT and no model.
bool is_adapter_folder(const std::string& path);

/// Where `weights` is a folder of PEFT: takes it as the first of the adapters, and the folder of its base model as
/// `weights`. `example`: how to name the base, for the hint. False when the session failed.
bool use_base(Session& session, std::string& weights, std::vector<std::string>& adapters, const std::string& example);

}  // namespace runner::cli
