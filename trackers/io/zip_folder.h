#pragma once

#include <string>

namespace trackers {

/// Writes every file below `folder`, following links and without kOwnerFile, into the zip file at `path`, uncompressed;
/// replaces an existing one at the end. TrackerError on disk errors or beyond 4 GB.
void zip_folder(const std::string& folder, const std::string& path);

}  // namespace trackers
