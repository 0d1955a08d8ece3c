#include "runner/train/save/lineage_checkpoints.h"

#include <algorithm>
#include <tuple>

#include "runner/store/run_reader.h"

namespace runner::train {

using artifact::CheckpointInfo;

std::vector<CheckpointInfo> lineage_checkpoints(const std::string& run_dir, const std::string& run_id) {
  const auto lineage = store::read_lineage(run_dir);
  if (!lineage) return {};
  std::vector<CheckpointInfo> found = artifact::list_checkpoints(run_dir + "/checkpoints");
  std::erase_if(found, [&](const CheckpointInfo& info) {
    const auto& fields = info.manifest.fields;
    return fields.run_id != run_id ||
           std::none_of(lineage.value().begin(), lineage.value().end(), [&](const store::LineageSegment& segment) {
             return segment.branch == fields.branch && info.step <= segment.last_step;
           });
  });
  std::stable_sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return std::tie(a.step, a.manifest.fields.branch) < std::tie(b.step, b.manifest.fields.branch);
  });
  return found;
}

}  // namespace runner::train
