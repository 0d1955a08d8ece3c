#include "runner/store/run_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/text.h"
#include "runner/store/flat_params.h"
#include "runner/store/run_files.h"
#include "runner/store/run_index.h"

namespace runner::store {
namespace {

// A file may change again within the tick of its time stamp; recent writes do not count as final.
constexpr std::int64_t kUnsettledMs = 2000;
constexpr std::size_t kCandidatesShown = 8;

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

Directory open_directory(const std::string& path) { return {opendir(path.c_str()), closedir}; }

std::vector<std::string> folder_names(const Directory& directory) {
  std::vector<std::string> names;
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    if (entry->d_type != DT_DIR && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN) continue;
    names.emplace_back(entry->d_name);
  }
  return names;
}

/// Fingerprint of a run's files.
struct Look {
  bool is_run = false;
  /// Of one that has ended: whoever writes to it again makes a journal, which changes the time of its folder. So two
  /// looks at the disk do, where another one needs six. "" for a run that has a lease only.
  std::string ended, any;
  std::int64_t changed_ms = 0;  ///< for `any`
};

Look look_at(const Directory& output_dir, const std::string& folder, bool has_ended) {
  Look look;
  struct stat info {};
  const auto add = [&](const char* file, std::string& text) {
    if (fstatat(dirfd(output_dir.get()), (folder + file).c_str(), &info, 0) != 0) {
      text += "-;";
      return false;
    }
    const std::int64_t ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    text += std::to_string(info.st_size) + "@" + std::to_string(ns) + ";";
    look.changed_ms = std::max(look.changed_ms, ns / 1'000'000);
    return true;
  };
  std::string text;
  const bool has_database = add("/run.db", text);
  look.is_run = has_database || fstatat(dirfd(output_dir.get()), (folder + "/lease").c_str(), &info, 0) == 0;
  if (!has_database) return look;
  add("", text);
  look.ended = text;
  if (has_ended) return look;
  for (const char* file : {"/run.db-wal", "/annotations.db", "/annotations.db-journal"}) add(file, text);
  look.any = text;
  return look;
}

bool has_ended(const RunSummary& run) {
  return run.status == RunStatus::kFinished || run.status == RunStatus::kFailed || run.status == RunStatus::kStopped ||
         run.status == RunStatus::kCrashed;
}

bool newer(const RunSummary& a, const RunSummary& b) {
  return std::pair(a.created_ms, a.id) > std::pair(b.created_ms, b.id);
}

core::Failure ambiguous(const std::string& text, const std::string& output_dir,
                        const std::vector<const RunSummary*>& fits) {
  const std::string list = core::joined_first(fits, kCandidatesShown, ", ",
                                              [](const RunSummary* run) { return run->id + " (" + run->name + ")"; });
  return {"\"" + text + "\" fits " + std::to_string(fits.size()) + " runs in " + output_dir + ": " + list,
          "write more of the id"};
}

/// A run's folder was copied: commands that remove, resume or annotate need to know which one.
core::Failure copied(const std::string& text, const std::vector<std::string>& folders) {
  return {"\"" + text + "\" is in " + std::to_string(folders.size()) +
              " folders, copies of each other: " + core::joined_first(folders, kCandidatesShown),
          "write the folder's path"};
}

core::Failure no_such_run(const std::string& text, const std::string& output_dir, const std::vector<RunSummary>& runs) {
  if (runs.empty()) {
    return {"no runs in folder " + output_dir,
            "`roux run RECIPE` starts one; --output-dir or ROUX_OUTPUT_DIR selects the folder"};
  }
  std::vector<std::string> names;
  for (const RunSummary& run : runs) {
    for (const std::string& name : {run.name, run.id, run.label}) {
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  // As eval, export and generate have it: a checkpoint behind its run.
  const std::size_t colon = text.rfind(':');
  const std::string run = colon == text.npos ? "" : text.substr(0, colon);
  if (std::find(names.begin(), names.end(), run) != names.end()) {
    return {"\"" + text + "\" names a checkpoint, and a run is named here",
            "write " + run + "; `roux resume " + run + " --checkpoint " + text.substr(colon + 1) + "` resumes from it"};
  }
  const std::string near = core::closest(text, names);
  return {"no run in " + output_dir + " is called \"" + text + "\"",
          (near.empty() ? "" : "did you mean \"" + near + "\"? ") +
              (runs.size() == 1 ? std::string("`roux runs list` shows the only run")
                                : "`roux runs list` shows all " + std::to_string(runs.size()))};
}

/// Without a database there is nothing to resume: the run ended within its first milliseconds.
bool has_begun(const RunSummary& run) {
  struct stat info {};
  return stat(run_db_path(run.run_dir).c_str(), &info) == 0 && info.st_size > 0;
}

/// For a run whose record is lost: what it saved is not. "" when it saved nothing.
std::string way_out(const RunSummary& run) {
  const std::string checkpoints = run.run_dir + "/checkpoints";
  const auto names = core::list_folder(checkpoints);
  if (!names || names.value().empty()) return "";
  return "; `--new --checkpoint " + checkpoints + "/STEP` resumes from what it saved";
}

RunSummary complete(RunSummary run) {
  read_resolved(run);
  return run;
}

}  // namespace

std::vector<RunSummary> list_runs(const std::string& output_dir, const core::Clock& clock, const ListOptions& options) {
  const Directory directory = open_directory(output_dir);
  const std::vector<std::string> folders = folder_names(directory);
  if (folders.empty()) return {};
  const RunIndex index(output_dir);
  std::unordered_map<std::string, RunIndex::Row> known = index.load();
  std::vector<std::pair<std::string, RunIndex::Row>> changed;
  std::vector<RunSummary> runs;
  runs.reserve(folders.size());
  for (const std::string& folder : folders) {
    const auto row = known.find(folder);
    if (row != known.end() && has_ended(row->second.run)) {
      if (look_at(directory, folder, true).ended == row->second.fingerprint) {
        runs.push_back(std::move(row->second.run));
        known.erase(row);
        if (options.with_recipe) read_resolved(runs.back());
        continue;
      }
    }
    const Look look = look_at(directory, folder, false);
    if (!look.is_run) continue;
    const bool fresh = row != known.end() && !look.any.empty() && row->second.fingerprint == look.any;
    RunSummary run = fresh ? std::move(row->second.run) : read_run(output_dir + "/" + folder);
    const RunSummary as_read = fresh ? RunSummary{} : run;
    if (row != known.end()) known.erase(row);
    settle_status(run, clock);
    // A live run changes twice a second: writing it down each time would cost more than reading it.
    const bool settled = clock.wall_ms() - look.changed_ms > kUnsettledMs && !run.owner && !look.any.empty();
    if (options.with_recipe || (!fresh && settled)) read_resolved(run);
    if (!fresh && settled) {
      changed.push_back({folder, {has_ended(as_read) ? look.ended : look.any, as_read, pack_leaves(run.resolved)}});
    }
    if (!options.with_recipe) run.resolved = core::Node::null();
    runs.push_back(std::move(run));
  }
  std::vector<std::string> gone;
  for (const auto& [folder, row] : known) gone.push_back(folder);
  index.store(changed, gone);
  std::sort(runs.begin(), runs.end(), newer);
  return runs;
}

void read_recipe_values(const std::string& output_dir, const std::vector<std::string>& names,
                        std::vector<RunSummary>& runs) {
  std::vector<LeafPath> paths;
  for (const std::string& name : names) {
    const std::string path = recipe::renamed_path(name), former = recipe::former_path(path);
    paths.emplace_back(path);
    if (!former.empty()) paths.emplace_back(former);
  }
  std::unordered_map<std::string_view, RunSummary*> unread;
  for (RunSummary& run : runs) {
    unread.emplace(std::string_view(run.run_dir).substr(run.run_dir.rfind('/') + 1), &run);
  }
  RunIndex(output_dir).each_recipe([&](std::string_view folder, std::string_view leaves) {
    const auto run = unread.find(folder);
    if (run == unread.end() || run->second->owner) return;  // an active run may have another recipe by now
    run->second->resolved = core::Node::mapping();
    for (const LeafPath& path : paths) path.copy(leaves, run->second->resolved);
    recipe::rename_keys(run->second->resolved);
    unread.erase(run);
  });
  for (const auto& [folder, run] : unread) read_resolved(*run);
}

core::Result<RunSummary> find_run(const std::string& output_dir, const std::string& text, const core::Clock& clock) {
  // The label of a run that was never renamed is empty, too.
  if (text.empty()) return core::Failure{"the name of a run must not be empty", "`last` is the newest run"};
  const std::vector<RunSummary> runs = list_runs(output_dir, clock, {.with_recipe = false});
  const auto first = [&](auto fits) {
    const auto at = std::find_if(runs.begin(), runs.end(), fits);
    return at == runs.end() ? nullptr : &*at;
  };
  if (text == "last" && !runs.empty()) {
    const RunSummary* newest = first([](const RunSummary& run) { return !run.archived; });
    return complete(newest != nullptr ? *newest : runs.front());
  }
  const std::function<bool(const RunSummary&)> ways[] = {
      [&](const RunSummary& run) { return run.id == text; },
      [&](const RunSummary& run) { return run.name == text || run.label == text; },
      [&](const RunSummary& run) { return run.name + "-" + run.id == text; },
  };
  for (const auto& fits : ways) {
    const RunSummary* found = first(fits);
    if (found == nullptr) continue;
    std::vector<std::string> folders;
    for (const RunSummary& run : runs) {
      if (run.id == found->id && fits(run)) folders.push_back(run.run_dir);
    }
    if (folders.size() > 1) return copied(text, folders);
    return complete(*found);
  }

  std::string path = text;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (is_run_folder(path)) {
    RunSummary run = read_run(path);
    settle_status(run, clock);
    return complete(std::move(run));
  }
  std::vector<const RunSummary*> fits;
  for (const RunSummary& run : runs) {
    if (!text.empty() && run.id.starts_with(text)) fits.push_back(&run);
  }
  if (fits.size() > 1) return ambiguous(text, output_dir, fits);
  if (fits.size() == 1) return complete(*fits.front());
  return no_such_run(text, output_dir, runs);
}

std::optional<RunSummary> newest_unfinished(const std::string& output_dir, const std::string& run_name,
                                            const core::Clock& clock, std::vector<std::string>* passed_over) {
  const auto note = [passed_over](std::string what) {
    if (passed_over != nullptr) passed_over->push_back(std::move(what));
  };
  std::vector<std::pair<std::string, std::string>> candidates;  // id, folder
  for (const std::string& folder : folder_names(open_directory(output_dir))) {
    const auto name = parse_folder_name(folder);
    if (name && name->run_name == run_name) candidates.emplace_back(name->id, folder);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  for (const auto& [id, folder] : candidates) {
    if (!is_run_folder(output_dir + "/" + folder)) continue;
    RunSummary run = read_run(output_dir + "/" + folder);
    settle_status(run, clock);
    if (run.smoke || (run.archived && !run.owner) || run.summary.find(kImportedFrom) != nullptr) continue;
    if (run.owner) return complete(std::move(run));
    if (run.status == RunStatus::kUnreadable) {
      note("skipping " + run.run_dir + ", which cannot be read: " + run.reason + way_out(run));
      continue;
    }
    if (!has_begun(run)) {
      const std::string way = way_out(run);
      if (!way.empty()) note("skipping " + run.run_dir + ", whose run.db is missing or empty" + way);
      continue;
    }
    if (run.status == RunStatus::kFinished || run.status == RunStatus::kFailed) return std::nullopt;
    return complete(std::move(run));
  }
  return std::nullopt;
}

StartLock::StartLock(const std::string& output_dir) {
  std::error_code ignored;
  std::filesystem::create_directories(output_dir, ignored);
  descriptor_ = open((output_dir + "/.start.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return;  // RunWriter::create reports errors of writing here
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  while (fcntl(descriptor_, F_OFD_SETLKW, &lock) != 0 && errno == EINTR) {
  }
}

StartLock::~StartLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace runner::store
