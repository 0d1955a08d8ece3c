#include "runner/store/run_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/store/annotations.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/text.h"
#include "runner/store/history.h"

namespace runner::store {
namespace {

constexpr std::int64_t kResolvedBytesMax = 64 << 20;

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

RunStatus status_from(const std::string& text) {
  for (const RunStatus status : {RunStatus::kFinished, RunStatus::kFailed, RunStatus::kStopped, RunStatus::kCrashed}) {
    if (to_text(status) == text) return status;
  }
  return RunStatus::kRunning;
}

void read_info(const Database& database, RunSummary& run) {
  Statement rows = database.prepare("SELECT key, value FROM info");
  while (rows.step()) {
    const std::string key = rows.text(0);
    if (key == "id") run.id = rows.text(1);
    if (key == "name") run.name = rows.text(1);
    if (key == "reason") run.reason = rows.text(1);
    if (key == "recipe_hash") run.recipe_hash = rows.text(1);
    if (key == "status") run.status = status_from(rows.text(1));
    if (key == "smoke") run.smoke = rows.integer(1) != 0;
    if (key == "created_ms") run.created_ms = rows.integer(1);
    if (key == "ended_ms") run.ended_ms = rows.integer(1);
    if (key == "summary") run.summary = core::parse_json(rows.text(1)).value_or(core::Node::null());
  }
}

std::int64_t last_write_ms(const Database& database) {
  Statement rows = database.prepare(
      "SELECT max((SELECT coalesce(max(time_ms), 0) FROM branches), "
      "coalesce((SELECT time_ms FROM metrics ORDER BY row DESC LIMIT 1), 0), "
      "coalesce((SELECT time_ms FROM events ORDER BY row DESC LIMIT 1), 0))");
  return rows.step() ? rows.integer(0) : 0;
}

void read_database(Database& database, const std::vector<std::string>& metrics, RunRecord& record) {
  const ReadTransaction transaction(database);
  RunSummary& run = record.run;
  read_info(database, run);
  run.branch = newest_branch(database);
  const auto stretches = lineage(database, run.branch);
  run.metrics = last_values(database, stretches.value());
  run.step = last_step(database, stretches.value());
  if (run.status == RunStatus::kRunning) run.ended_ms = last_write_ms(database);
  for (const std::string& name : metrics) {
    auto points = points_of(database, name, stretches.value());
    if (!points.empty()) record.curves.emplace(name, std::move(points));
  }
}

RunRecord record_by_name(const std::string& run_dir) {
  RunRecord record;
  RunSummary& run = record.run;
  run.run_dir = run_dir;
  const std::string folder = std::filesystem::path(run_dir).filename();
  if (const auto name = parse_folder_name(folder)) {
    run.id = name->id;
    run.name = name->run_name;
    run.created_ms = name->created_ms;
  } else {
    run.id = run.name = folder;
  }
  return record;
}

bool holds_nothing(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) != 0 || info.st_size == 0;
}

}  // namespace

bool is_run_folder(const std::string& path) { return exists(run_db_path(path)) || has_lease_file(path); }

RunSummary read_record(const std::string& run_dir) { return read_record(run_dir, {}).run; }

RunRecord read_record(const std::string& run_dir, const std::vector<std::string>& metrics) {
  RunRecord record = record_by_name(run_dir);
  // A run that has just begun: its lease is there, its database not yet.
  if (holds_nothing(run_db_path(run_dir))) return record;
  try {
    auto opened = open_run(run_dir);
    if (!opened) throw core::RunError(opened.failure().message, opened.failure().hint);
    read_database(opened.value(), metrics, record);
  } catch (const core::RunError& error) {
    record.run.status = RunStatus::kUnreadable;
    record.run.reason = error.what();
  }
  return record;
}

RunRecord read_record(Database& database, const std::string& run_dir, const std::vector<std::string>& metrics) {
  RunRecord record = record_by_name(run_dir);
  read_database(database, metrics, record);
  return record;
}

RunSummary read_run(const std::string& run_dir) {
  RunSummary run = read_record(run_dir);
  const Annotations annotations = read_annotations(run_dir);
  run.label = annotations.label;
  run.tags = annotations.tags;
  for (const auto& [time_ms, text] : annotations.notes) run.notes.push_back(text);
  run.archived = annotations.archived;
  return run;
}

void settle_status(RunSummary& run, const core::Clock& clock) {
  run.owner.reset();
  if (run.status != RunStatus::kRunning) return;
  run.owner = live_owner(run.run_dir, clock);
  if (run.owner) {
    run.ended_ms = 0;
    return;
  }
  run.status = RunStatus::kCrashed;
  run.reason = "its process ended without a status";
}

void read_resolved(RunSummary& run) {
  constexpr const char* kFile = "resolved.json";
  const std::string path = run.branch > 0 ? branch_file(run.run_dir, kFile, run.branch) : run.run_dir + "/" + kFile;
  const auto text = core::read_file(path, kResolvedBytesMax);
  run.resolved = text ? core::parse_json(text.value()).value_or(core::Node::null()) : core::Node::null();
  recipe::rename_keys(run.resolved);
}

}  // namespace runner::store
