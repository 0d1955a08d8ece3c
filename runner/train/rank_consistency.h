#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/rank_info.h"
#include "runner/core/result.h"
#include "runner/train/experiment/train_request.h"
#include "runner/train/save/resume.h"

namespace runner::resolve {
struct Recipe;
}
namespace components::model {
class Model;
}
namespace runner::distributed {
class ProcessGroup;
}
namespace runner::store {
class RunWriter;
}

namespace runner::train {

// What the processes that work on one recipe must agree on. All of these are collectives.

/// Joins the process group as this rank; null without one: this process works alone. `auto_device`: what `device: auto`
/// is here. RunError when a rank does not join, or differs in recipe, program, CPU instructions or threads: the message
/// shows both.
std::shared_ptr<distributed::ProcessGroup> join_process_group(const resolve::Recipe& recipe,
                                                              const std::optional<core::RankInfo>& rank,
                                                              const std::string& auto_device);

/// How the ranks exchange tensors, `gloo` or `nccl`; over NCCL their GPUs are connected then. `auto` is the backend
/// that a run on GPUs was begun with, and NCCL for a new one where each rank has a GPU of its own. Nothing when
/// `diagnostics` got an error, on all ranks. The device is settled and current.
std::optional<std::string> agree_on_backend(distributed::ProcessGroup& ranks, const resolve::Recipe& recipe,
                                            const TrainRequest& request, const Start& start,
                                            core::Diagnostics& diagnostics);

/// The GPU of a rank.
struct RankGpu {
  std::string name;  ///< `GPU 0000:65:00.0 of HOST`; "": the rank has no NCCL
  std::string boot;  ///< core::boot_id()
};

/// What agree_on_backend() decides for `auto` or `nccl` by the GPUs of the ranks: NCCL where each has one of its own;
/// otherwise Gloo for `auto`, and a failure for `nccl`.
core::Result<std::string> backend_for(const std::string& wanted, const std::vector<RankGpu>& gpus);

/// RunError when the weights of two ranks differ.
void check_equal_weights(distributed::ProcessGroup& ranks, const components::model::Model& model);

/// Rank 0 chooses how the run begins and tells the others. Nothing when it was refused, which rank 0 reports.
std::optional<Start> choose_start_on_rank_0(distributed::ProcessGroup* ranks, core::Diagnostics& diagnostics,
                                            const std::function<Start()>& choose);

/// Rank 0 opens the run; the others get a writer of the same run that discards everything.
std::unique_ptr<store::RunWriter> open_run_on_rank_0(distributed::ProcessGroup* ranks,
                                                     const std::function<std::unique_ptr<store::RunWriter>()>& open);

}  // namespace runner::train
