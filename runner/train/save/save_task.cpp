#include "runner/train/save/save_task.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "runner/artifact/draft_names.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/joint_save.h"
#include "runner/core/log.h"
#include "runner/core/node.h"
#include "runner/core/units.h"

namespace runner::train {
namespace {

using core::Node;
using core::RunError;

constexpr std::int64_t kLookMs = 200;           // how often a waiting save checks whether to give up
constexpr std::int64_t kTryNs = 5'000'000'000;  // a quota does not show in the free space: only a retry tells
constexpr std::int64_t kSayNs = 60'000'000'000;

}  // namespace

SaveTask::SaveTask(checkpoint::Snapshot snapshot, checkpoint::SaveOptions options, artifact::RetentionPolicy retention,
                   FullDiskPolicy full_disk, store::RunWriter& run, const core::Clock& clock)
    : snapshot_(std::move(snapshot)),
      options_(std::move(options)),
      retention_(std::move(retention)),
      full_disk_(std::move(full_disk)),
      run_(run),
      clock_(clock),
      bytes_(snapshot_.bytes()) {}

void SaveTask::write() {
  try {
    persist([this] {
      if (draft_ == nullptr) draft_ = snapshot_.begin(options_);
      try {
        snapshot_.write(*draft_);
      } catch (const RunError& error) {
        const RunError told = explained(error);
        // What was written is in the way of other files; but in a draft of several processes theirs are, too.
        if (options_.joint == nullptr) draft_.reset();
        throw told;
      }
    });
  } catch (const RunError& error) {
    if (draft_ != nullptr) draft_->give_up({error.what(), error.hint(), error.exit_code()});
    throw;
  }
  snapshot_.release();
}

std::string SaveTask::commit() {
  std::string path;
  try {
    persist([&] { path = snapshot_.commit(*draft_, options_); });
  } catch (const RunError& error) {
    const RunError told = explained(error);
    draft_->give_up({told.what(), told.hint(), told.exit_code()});
    throw told;
  }
  if (path.empty()) return path;  // the first of several processes has it
  retention_.verified = path;
  for (const std::string& gone : artifact::rotate(options_.checkpoints_dir, retention_)) {
    core::log_debug("rotated " + gone);
  }
  return path;
}

/// What the error is where the folder was moved or removed under the save: the system says of a file that it is not
/// there.
RunError SaveTask::explained(const RunError& error) const {
  namespace fs = std::filesystem;
  if (error.exit_code() != core::kExitFailed || !error.hint().empty()) return error;
  const fs::path checkpoints = options_.checkpoints_dir;
  const std::string name = artifact::checkpoint_name(step());
  const bool is_joint = options_.joint != nullptr;
  const fs::path draft =
      checkpoints / (is_joint ? artifact::draft_name(name, options_.joint->first) : artifact::draft_name(name));
  const std::string gone = " was moved or removed during the save of step " + std::to_string(step());
  std::error_code failed;
  if (const fs::path run = checkpoints.parent_path(); !fs::exists(run, failed) && !failed) {
    return RunError("the run's folder " + run.string() + gone,
                    "where it was moved, `roux resume PATH` continues from its last checkpoint");
  }
  if (!fs::exists(checkpoints, failed) && !failed) {
    return RunError(checkpoints.string() + gone,
                    "move it back, then the same command continues from the last checkpoint in it");
  }
  if (!fs::exists(draft, failed) && !failed) {
    return RunError(draft.string() + gone, "the same command continues from the checkpoint before it");
  }
  const std::string text = error.what();
  if (text.ends_with(" is missing") || text.ends_with(": no such file or directory")) {
    return RunError(text + ": it was moved or removed during the save of step " + std::to_string(step()),
                    "the same command continues from the checkpoint before it");
  }
  return error;
}

/// Retries `attempt` while the disk is full, as long as the policy allows.
template <typename Attempt>
void SaveTask::persist(Attempt attempt) {
  const std::int64_t since_ns = clock_.monotonic_ns();
  std::int64_t said_ns = 0;
  while (true) {
    try {
      attempt();
      if (said_ns != 0) core::log_info("disk space is available again: saving step " + std::to_string(step()));
      return;
    } catch (const RunError& error) {
      if (error.exit_code() != core::kExitResumable || !full_disk_.wait) throw;
      waited_for_room_ = true;
      const std::int64_t now_ns = clock_.monotonic_ns();
      if (said_ns == 0 || now_ns - said_ns > kSayNs) {
        const double left_s = full_disk_.timeout_s - static_cast<double>(now_ns - since_ns) * 1e-9;
        core::log_warning(std::string(error.what()) + "; the save of step " + std::to_string(step()) +
                          " waits for disk space, for at most " + core::format_duration(std::max(0.0, left_s)));
        if (said_ns == 0) {
          Node data = Node::mapping();
          data.set("message", Node::string(error.what()));
          run_.event("disk_full", step(), std::move(data));
        }
        said_ns = now_ns;
      }
      if (!wait_for_room(since_ns)) throw;
    }
  }
}

bool SaveTask::wait_for_room(std::int64_t since_ns) {
  const auto has_room = [this] {
    const auto bytes = artifact::attempt([this] { return artifact::system_io().free_bytes(options_.checkpoints_dir); });
    return bytes.ok() && bytes.value() >= bytes_;
  };
  // Full despite free space means a quota or run.db: only an occasional retry tells.
  const bool was_short = !has_room();
  const std::int64_t begin_ns = clock_.monotonic_ns();
  while (!full_disk_.give_up || !full_disk_.give_up()) {
    const std::int64_t now_ns = clock_.monotonic_ns();
    if (static_cast<double>(now_ns - since_ns) * 1e-9 > full_disk_.timeout_s) return false;
    if (now_ns - begin_ns > kTryNs || (was_short && has_room())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
  }
  return false;
}

}  // namespace runner::train
