#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/provenance/git_state.h"
#include "runner/core/platform/connect_nccl.h"
#include "runner/core/platform/device_graph.h"
#include "runner/core/rank_info.h"

namespace runner::store {
class InMemoryRun;
}

namespace runner::train {

/// What the command line asks of a training, beyond the recipe. Without LibTorch: the program fills it in.
struct TrainRequest {
  bool start_new = false;                  ///< --new
  std::string auto_device = "cpu";         ///< what `device: auto` of a new run is here
  std::int64_t gpu_memory_bytes = 0;       ///< of the smallest GPU that this machine's ranks use; 0: unknown, or none
  std::vector<std::string> gpu_addresses;  ///< PCI addresses of the GPUs that this process sees, in CUDA's order
  std::vector<std::string> gpu_names;      ///< of the same, as core::gpu_peak() knows them
  core::ConnectNccl nccl = nullptr;        ///< null: this process has no GPU, or its GPU support has no NCCL
  core::NewDeviceGraph new_graph;          ///< of those GPUs; null on the CPU
  bool smoke = false;                      ///< --smoke: two steps, one evaluation, one save
  std::optional<std::string> resume_run;   ///< `roux resume RUN`: its run folder
  std::string checkpoint;  ///< --checkpoint: `last`, `best`, `step-000500` or a folder; "" when not given
  std::vector<std::string> allow_changes;  ///< --allow-change KEY
  std::string summary_json;                ///< --summary-json FILE
  std::vector<std::string> command_line;   ///< to be recorded: artifact::hide_secrets() was there
  bool progress_bar = false;               ///< standard error is a terminal
  bool quiet = false;
  std::optional<core::RankInfo> rank;           ///< rank among several processes; nothing: a single process
  std::shared_future<artifact::GitState> code;  ///< code of the working directory; invalid: not recorded
  std::function<void(const std::string& run_dir)> on_opened;  ///< the run exists; called on rank 0
  /// Training is complete and its last checkpoint saved, but the run has not ended yet; called on rank 0. What it
  /// throws ends the run.
  std::function<void(const std::string& run_dir)> on_trained;
  std::string run_id;                         ///< id of a new run; "": generate one
  std::shared_ptr<store::InMemoryRun> light;  ///< of a new run: store::NewRun
  std::string resolved_json;                  ///< of the recipe, if already known; else ""
  /// A signal for this training only, if it shares its process with others; null: it has the process to itself.
  const std::atomic<int>* signal = nullptr;
};

}  // namespace runner::train
