#pragma once

#include <memory>
#include <string>

#include "trackers/tracker.h"

namespace trackers {

/// A tracker from a shared object with the functions of trackers/plugin_abi.h. `options` is JSON. TrackerError (kPause)
/// when the file is not one or has another ABI.
std::unique_ptr<Tracker> open_plugin_library(const std::string& path, const std::string& options);

}  // namespace trackers
