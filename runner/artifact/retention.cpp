#include "runner/artifact/retention.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runner/artifact/draft_names.h"
#include "runner/artifact/io/io.h"
#include "runner/artifact/manifest.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

/// Line 1.
std::vector<CheckpointInfo> whole_ones(const std::string& checkpoints_dir, const RetentionPolicy& policy) {
  std::vector<CheckpointInfo> whole = list_checkpoints(checkpoints_dir);
  std::erase_if(whole, [&](const CheckpointInfo& info) {
    const bool foreign = !policy.run_id.empty() && info.manifest.fields.run_id != policy.run_id;
    return foreign || !check_sizes(info.path, info.manifest);
  });
  return whole;
}

std::vector<RetentionItem> items_of(const std::vector<CheckpointInfo>& all) {
  std::vector<RetentionItem> items;
  for (const CheckpointInfo& info : all) {
    items.push_back({info.step, bytes_of(info.manifest), info.manifest.fields.trained_s, is_pinned(info.path)});
  }
  return items;
}

/// Line 8. `goes` is ascending.
bool leaves_one_restorable(const std::vector<CheckpointInfo>& all, const std::vector<std::size_t>& goes,
                           const std::string& verified) {
  std::vector<const CheckpointInfo*> stay;
  for (std::size_t i = all.size(); i-- > 0;) {
    if (!std::binary_search(goes.begin(), goes.end(), i)) stay.push_back(&all[i]);
  }
  const auto is_verified = [&](const CheckpointInfo* info) { return info->path == verified; };
  if (std::any_of(stay.begin(), stay.end(), is_verified)) return true;
  return std::any_of(stay.begin(), stay.end(),
                     [](const CheckpointInfo* info) { return verify_checkpoint(info->path).ok(); });
}

}  // namespace

std::vector<std::size_t> surplus(const std::vector<RetentionItem>& items, const RetentionPolicy& policy) {
  std::vector<std::size_t> goes, may_go;
  std::int64_t count = 0, bytes = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const RetentionItem& item = items[i];
    if (item.pinned || (policy.keep_every > 0 && item.step % policy.keep_every == 0)) continue;
    const bool best =
        std::find(policy.best_steps.begin(), policy.best_steps.end(), item.step) != policy.best_steps.end();
    const bool held = i + 1 == items.size() || best;
    const bool old = policy.keep_age_s > 0 && policy.trained_s - item.trained_s > policy.keep_age_s;
    if (!held && (policy.best_only || old)) {
      goes.push_back(i);
      continue;
    }
    ++count;
    bytes += item.bytes;
    if (!held) may_go.push_back(i);
  }
  for (const std::size_t i : may_go) {
    const bool too_many = policy.save_total_limit > 0 && count > policy.save_total_limit;
    const bool too_large = policy.keep_bytes > 0 && bytes > policy.keep_bytes;
    if (!too_many && !too_large) break;
    goes.push_back(i);
    --count;
    bytes -= items[i].bytes;
  }
  std::sort(goes.begin(), goes.end());
  return goes;
}

std::vector<std::string> rotate(const std::string& checkpoints_dir, const RetentionPolicy& policy, Io& io) {
  std::vector<std::string> removed;
  std::vector<CheckpointInfo> all;
  if (const auto read = attempt([&] { all = whole_ones(checkpoints_dir, policy); }); !read) {
    core::log_warning("old checkpoints are kept: " + read.failure().message);
    return removed;
  }
  const std::vector<std::size_t> goes = surplus(items_of(all), policy);
  if (goes.empty()) return removed;
  if (!leaves_one_restorable(all, goes, policy.verified)) {
    core::log_warning("no old checkpoint is removed from " + checkpoints_dir +
                      ": no checkpoint to keep passes verification");
    return removed;
  }
  for (const std::size_t i : goes) {
    const std::string& path = all[i].path;
    const core::Result<void> gone = attempt([&] { remove_checkpoint(path, true, io); });
    if (gone) {
      removed.push_back(path);
    } else {
      core::log_warning("an old checkpoint is kept: " + gone.failure().message);
    }
  }
  return removed;
}

void remove_checkpoint(const std::string& path, bool spare_pinned, Io& io) {
  const fs::path folder = fs::path(path).parent_path();
  const std::string gone = (folder / deleted_name(fs::path(path).filename().string())).string();
  io.rename(path, gone);
  // pin() makes its mark by this path: from here on it can only fail, so this check is final.
  if (spare_pinned && is_pinned(gone)) {
    io.rename(gone, path);
    throw core::RunError(path + " was pinned meanwhile");
  }
  io.sync_dir(folder.string());
  remove_tree(io, gone);
}

void remove_leftovers(const std::string& checkpoints_dir, Io& io) {
  std::error_code error;
  const std::vector<std::string> names_there = core::list_folder(checkpoints_dir).value();
  for (const std::string& name : names_there) {
    const std::string path = (fs::path(checkpoints_dir) / name).string();
    if (is_leftover(name) && fs::is_directory(path, error)) remove_tree(io, path);
  }
}

core::Result<void> pin(const std::string& path, Io& io) {
  if (is_pinned(path)) return {};
  return attempt([&] {
    const std::string mark = (fs::path(path) / kPinnedFile).string();
    const int handle = io.create(mark);
    io.sync_file(handle, mark);
    io.close(handle, mark);
    io.sync_dir(path);
  });
}

core::Result<void> unpin(const std::string& path, Io& io) {
  return attempt([&] {
    io.remove_file((fs::path(path) / kPinnedFile).string());
    io.sync_dir(path);
  });
}

}  // namespace runner::artifact
