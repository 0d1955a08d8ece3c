#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/git_state.h"
#include "runner/core/rank_info.h"

namespace runner::store {
class InMemoryRun;
}

namespace runner::train {

/// What the command line asks of a training, beyond the recipe. Free of LibTorch: the program fills it in.
struct TrainRequest {
  bool start_anew = false;                ///< --new
  bool smoke = false;                     ///< --smoke: two steps, one evaluation, one save
  std::optional<std::string> resume_run;  ///< `roux resume RUN`: its run folder
  std::string checkpoint;  ///< --checkpoint: `last`, `best`, `step-000500` or a folder; "" when not given
  std::vector<std::string> allow_changes;  ///< --allow-change KEY
  std::string summary_json;                ///< --summary-json FILE
  std::vector<std::string> command_line;
  bool progress_bar = false;  ///< standard error is a terminal
  bool quiet = false;
  std::optional<core::RankInfo> rank;                         ///< among several processes; nothing: there is this one
  std::shared_future<artifact::GitState> code;                ///< of the folder it is started in; invalid: nobody looks
  std::function<void(const std::string& run_dir)> on_opened;  ///< the run is there; called by the first rank
  std::string run_id;                                         ///< of a new run; "": one is made
  std::shared_ptr<store::InMemoryRun> light;                  ///< of a new run: store::NewRun
  std::string resolved_json;                                  ///< of the recipe, from who has made it already; else ""
  /// A signal for this training alone, where it shares its process with others; null: the process is its own.
  const std::atomic<int>* signal = nullptr;
};

}  // namespace runner::train
