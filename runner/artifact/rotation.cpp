#include <algorithm>
#include <filesystem>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/draft_names.h"
#include "runner/artifact/io.h"
#include "runner/core/log.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

/// Those that may go, oldest first, and how many of the others count towards the limit.
struct Choice {
  std::vector<CheckpointInfo> may_go;
  int counted = 0;
};

Choice choose(std::vector<CheckpointInfo> all, const RetentionPolicy& policy) {
  Choice choice;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t step = all[i].step;
    if (is_pinned(all[i].path) || (policy.keep_every > 0 && step % policy.keep_every == 0)) continue;
    if (i + 1 == all.size() || policy.best_step == step) {
      ++choice.counted;
    } else {
      choice.may_go.push_back(std::move(all[i]));
    }
  }
  return choice;
}

void remove_checkpoint(Io& io, const fs::path& path) {
  const std::string parent = path.parent_path().string();
  const std::string gone = (path.parent_path() / deleted_name(path.filename().string())).string();
  io.rename(path.string(), gone);
  io.sync_dir(parent);
  remove_tree(io, gone);
}

}  // namespace

std::vector<std::string> rotate(const std::string& checkpoints_dir, const RetentionPolicy& policy, Io& io) {
  std::vector<std::string> deleted;
  if (policy.save_total_limit <= 0) return deleted;
  const Choice choice = choose(list_checkpoints(checkpoints_dir), policy);
  const int surplus = choice.counted + static_cast<int>(choice.may_go.size()) - policy.save_total_limit;
  const std::size_t count = std::min(choice.may_go.size(), static_cast<std::size_t>(std::max(surplus, 0)));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& path = choice.may_go[i].path;
    const core::Result<void> removed = attempt([&] { remove_checkpoint(io, path); });
    if (removed) {
      deleted.push_back(path);
    } else {
      core::log_warning("an old checkpoint stays: " + removed.failure().message);
    }
  }
  return deleted;
}

}  // namespace runner::artifact
