#include "trackers/io/artifact_files.h"

#include <catch2/catch.hpp>

#include "tests/support/folder.h"

using trackers::Artifact;
using trackers::artifact_files;
using trackers::TrackerError;

namespace {

std::string names(const Artifact& artifact, std::optional<std::int64_t> limit) {
  try {
    std::string text;
    for (const auto& file : artifact_files(artifact, limit))
      text += file.path.filename().string() + "=" + file.below + " ";
    return text;
  } catch (const TrackerError& error) {
    CHECK(error.remedy() == TrackerError::Remedy::kReject);
    return error.what();
  }
}

}  // namespace

TEST_CASE("an artifact is a file, or all files of a folder, up to a size", "[trackers]") {
  const tests::Folder folder;
  folder.write("step-1/model/b.bin", "12345");
  folder.write("step-1/a.json", "123");
  folder.write("trace.json", "{}");
  const Artifact checkpoint{"step-1", "checkpoint", "step-1", 1, 0}, trace{"trace.json", "profile", "trace.json", 1, 0};
  CHECK(names(checkpoint, std::nullopt) == "a.json=a.json b.bin=model/b.bin ");
  CHECK(names(checkpoint, 8) == "a.json=a.json b.bin=model/b.bin ");
  CHECK(names(checkpoint, 7) == "checkpoint step-1 of 8 B is larger than artifact_size_limit, 7 B");
  CHECK(names(trace, 2) == "trace.json= ");
  CHECK(names(trace, 0) == "profile trace.json of 2 B is larger than artifact_size_limit, 0 B");
  CHECK(names({"gone", "profile", "gone.json", 1, 0}, 5).find("gone.json") != std::string::npos);
}
