#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trackers/io/tracker_data.h"

namespace trackers {

struct ArtifactFile {
  std::filesystem::path path;
  std::string below;  ///< within the folder that the artifact is; "" where it is a file itself
};

/// The files of an artifact, in the order of their names. TrackerError (kLeaveOut) where they are larger than the limit
/// together, or when they were taken away meanwhile.
std::vector<ArtifactFile> artifact_files(const Artifact& artifact, std::optional<std::int64_t> size_limit);

}  // namespace trackers
