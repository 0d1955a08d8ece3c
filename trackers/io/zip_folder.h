#pragma once

#include <string>

namespace trackers {

/// Puts every file below `folder`, links followed, into the zip file at `path`, not compressed; one that is there is
/// replaced at the end only. TrackerError when the disk refuses or more than 4 GB would go in.
void zip_folder(const std::string& folder, const std::string& path);

}  // namespace trackers
