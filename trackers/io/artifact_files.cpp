#include "trackers/io/artifact_files.h"

#include <algorithm>
#include <system_error>

#include "runner/core/units.h"

namespace trackers {

namespace fs = std::filesystem;

std::vector<ArtifactFile> artifact_files(const Artifact& artifact, std::optional<std::int64_t> size_limit) {
  std::vector<ArtifactFile> files;
  std::int64_t bytes = 0;
  const auto add = [&](const fs::path& path, const std::string& below) {
    files.push_back({path, below});
    bytes += static_cast<std::int64_t>(fs::file_size(path));
  };
  try {
    if (fs::is_directory(artifact.path)) {
      for (const auto& entry : fs::recursive_directory_iterator(artifact.path)) {
        if (entry.is_regular_file()) add(entry.path(), entry.path().lexically_relative(artifact.path).generic_string());
      }
    } else {
      add(artifact.path, "");
    }
  } catch (const fs::filesystem_error& error) {
    throw TrackerError(TrackerError::Remedy::kReject, error.what());
  }
  if (size_limit && bytes > *size_limit) {
    throw TrackerError(TrackerError::Remedy::kReject,
                       artifact.kind + " " + artifact.name + " of " + runner::core::format_bytes(bytes) +
                           " is larger than artifact_size_limit, " + runner::core::format_bytes(*size_limit));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.below < b.below; });
  return files;
}

}  // namespace trackers
