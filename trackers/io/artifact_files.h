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
  std::string below;  ///< relative to the artifact's folder; "" if it is a file itself
};

/// The files of an artifact, sorted by name. TrackerError (kReject) when their total size exceeds the limit, or when
/// they were deleted meanwhile.
std::vector<ArtifactFile> artifact_files(const Artifact& artifact, std::optional<std::int64_t> size_limit);

}  // namespace trackers
