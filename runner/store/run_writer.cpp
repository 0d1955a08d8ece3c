#include "runner/store/run_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/text.h"
#include "runner/store/database/unsynced_file.h"
#include "runner/store/in_memory_run.h"
#include "runner/store/lease.h"
#include "runner/store/run_db_writer.h"

namespace runner::store {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kStatusTexts = {"running", "finished", "failed",
                                                          "stopped", "crashed",  "unreadable"};

constexpr const char* kFolderHint =
    "needs write access and free space; choose another folder with output_dir or --output-dir";

constexpr const char* kRecordHint = "`--new --checkpoint FOLDER` continues from one of its checkpoints in a new run";

core::Failure cannot_make(const std::string& path) {
  return {"cannot create the folder " + path + ": " + std::strerror(errno), kFolderHint};
}

/// The run may be moved with its folder.
std::string within(const std::string& run_dir, const std::string& path) {
  const fs::path absolute = fs::absolute(path);
  const fs::path relative = absolute.lexically_relative(fs::absolute(run_dir));
  return relative.empty() || *relative.begin() == ".." ? absolute.string() : relative.string();
}

class Writer final : public RunWriter {
 public:
  Writer(std::string run_id, std::unique_ptr<Lease> lease, RunDbWriter::Start start, const core::Clock& clock)
      : run_dir_(start.run_dir),
        run_id_(std::move(run_id)),
        lease_(std::move(lease)),
        db_writer_(std::move(start), *lease_, clock) {}

  ~Writer() override {
    if (!finished_) finish(RunStatus::kFailed, "the process exited without a status");
  }

  const std::string& run_dir() const override { return run_dir_; }
  const std::string& run_id() const override { return run_id_; }
  std::int64_t branch() const override { return db_writer_.branch(); }
  void rewind(std::int64_t step) override { db_writer_.rewind(step); }

  MetricId metric(const std::string& name, const std::string& context) override {
    return db_writer_.metric(name, context);
  }
  void log(std::int64_t step, std::span<const MetricValue> values) override { db_writer_.log(step, values); }
  void event(const std::string& kind, std::int64_t step, core::Node data) override {
    db_writer_.event(kind, step, core::to_json(data, -1));
  }
  void artefact(const std::string& kind, std::int64_t step, const std::string& path, core::Node data) override {
    db_writer_.artefact(kind, step, within(run_dir_, path), core::to_json(data, -1));
  }
  std::int64_t last_row() const override { return db_writer_.last_row(); }
  std::int64_t flush_durable(std::int64_t timeout_ms) override { return db_writer_.flush_durable(timeout_ms); }
  void set_summary(core::Node summary) override { db_writer_.set_summary(core::to_json(summary, -1)); }

  void set_disk_timeout(DiskTimeout timeout) override { db_writer_.set_disk_timeout(std::move(timeout)); }

  bool finish(RunStatus status, const std::string& reason) override {
    if (finished_) return complete_;
    finished_ = true;
    complete_ = db_writer_.finish(status, reason);
    if (!complete_) {
      core::log_warning("the end of the run could not be written to " + run_db_path(run_dir_) +
                        "; the run will show as crashed");
    }
    lease_->release();
    return complete_;
  }

  void throw_if_failed() const override { db_writer_.throw_if_failed(); }
  std::int64_t points_waited() const override { return db_writer_.points_waited(); }

 private:
  std::string run_dir_, run_id_;
  std::unique_ptr<Lease> lease_;
  RunDbWriter db_writer_;
  bool finished_ = false, complete_ = true;
};

void write_text(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) throw core::RunError("cannot write " + path + ": " + std::strerror(errno));
}

void write_recipe_files(const NewRun& run, const std::string& run_dir) {
  const std::string resolved = run_dir + "/resolved.json";
  write_text(resolved, run.resolved_json);
  for (const auto& [name, content] : run.recipe_files) {
    const fs::path relative = fs::path(name).lexically_normal();
    RUNNER_ASSERT(relative.is_relative() && *relative.begin() != "..", "recipe files lie inside the run folder");
    const fs::path path = fs::path(run_dir) / relative;
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    // A fully written recipe is the same text: then one file has both names, if possible.
    const bool is_same = run.light && content == run.resolved_json;
    if (!is_same || link(resolved.c_str(), path.c_str()) != 0) write_text(path, content);
  }
}

std::string command_line_json(const NewRun& run) {
  core::Node list = core::Node::sequence();
  for (const std::string& word : run.command_line) list.items().push_back(core::Node::string(word));
  return core::to_json(list, -1);
}

void use_journal(Database& database, const std::string& run_dir) {
  database.execute(wal_is_safe_in(run_dir) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
  database.execute("PRAGMA synchronous=NORMAL");
}

/// What run.db says from the first moment on.
void put_beginning(Database& database, const NewRun& run, const std::string& run_id, std::int64_t now_ms) {
  put_info(database, "id", run_id);
  put_info(database, "name", run.run_name);
  put_info(database, "created_ms", run.created_ms > 0 ? run.created_ms : now_ms);
  put_info(database, "smoke", std::int64_t{run.smoke});
  put_info(database, "recipe_hash", run.recipe_hash);
  put_info(database, "command_line", command_line_json(run));
  put_info(database, "status", to_text(RunStatus::kRunning));
  database.prepare("INSERT OR REPLACE INTO branches VALUES(0, NULL, 0, ?)").bind(1, now_ms).run();
}

/// On the writer's thread; called again when the disk was full, so every part may already be there.
Database make_databases(const NewRun& run, const std::string& run_dir, const std::string& run_id, std::int64_t now_ms) {
  write_recipe_files(run, run_dir);
  Database database(run_db_path(run_dir), Database::Mode::kCreate);
  // Nothing is guaranteed on disk before the first flush_durable, which syncs folder and file as a whole.
  database.execute("PRAGMA synchronous=OFF");
  {
    Transaction transaction(database);
    if (is_empty(database)) create_run_schema(database);
    put_beginning(database, run, run_id, now_ms);
    transaction.commit();
  }
  {
    Database annotations(annotations_db_path(run_dir), Database::Mode::kCreate);
    annotations.execute("PRAGMA synchronous=OFF");
    Transaction transaction(annotations);
    if (is_empty(annotations)) create_annotations_schema(annotations);
    transaction.commit();
  }
  use_journal(database, run_dir);
  return database;
}

/// Of a light run. The small files are written here, as make_databases does; annotations.db by who has something to
/// say.
Database& begin_in_memory(const NewRun& run, const std::string& run_dir, const std::string& run_id,
                          std::int64_t now_ms) {
  write_recipe_files(run, run_dir);
  Database& database = run.light->begin(run_dir);
  Transaction transaction(database);
  put_beginning(database, run, run_id, now_ms);
  transaction.commit();
  return database;
}

Database make_light_databases(const NewRun& run, const std::string& run_dir, const std::string& run_id,
                              std::int64_t now_ms) {
  write_unsynced(run_db_path(run_dir), begin_in_memory(run, run_dir, run_id, now_ms).image());
  Database database(run_db_path(run_dir), Database::Mode::kWrite);
  use_journal(database, run_dir);
  database.execute("PRAGMA synchronous=OFF");
  return database;
}

/// Opens the run.db that there is.
std::function<Database()> opener(const std::string& run_dir) {
  return [run_dir] {
    Database database(run_db_path(run_dir), Database::Mode::kWrite);
    use_journal(database, run_dir);
    return database;
  };
}

/// What a resume reads from run.db and writes there: a new branch, and the status running.
struct Reopened {
  std::string run_id;
  RunDbWriter::Start start;
};

Reopened open_branch(const ResumePoint& point, std::int64_t now_ms) {
  Database database(run_db_path(point.run_dir), Database::Mode::kWrite);
  check_format(database, kRunFormat).value();
  use_journal(database, point.run_dir);
  Reopened reopened;
  reopened.start.run_dir = point.run_dir;
  Transaction transaction(database);
  Statement id = database.prepare("SELECT value FROM info WHERE key = 'id'");
  if (id.step()) reopened.run_id = id.text(0);
  Statement parent = database.prepare("SELECT count(*) FROM branches WHERE id = ?");
  if (!parent.bind(1, point.branch).step() || parent.integer(0) == 0) {
    throw core::RunError(database.path() + " has no branch " + std::to_string(point.branch),
                         "the checkpoint was written by another run than this one");
  }
  Statement next = database.prepare("SELECT max(id) + 1 FROM branches");
  next.step();
  reopened.start.branch = next.integer(0);
  database.prepare("INSERT INTO branches VALUES(?, ?, ?, ?)")
      .bind(1, reopened.start.branch)
      .bind(2, point.branch)
      .bind(3, point.step)
      .bind(4, now_ms)
      .run();
  // The run's last status is the reason of the branch; a killed run has no other record.
  const auto info = [&database](const char* key) {
    Statement row = database.prepare("SELECT value FROM info WHERE key = ?");
    return row.bind(1, std::string(key)).step() ? row.text(0) : std::string();
  };
  const std::string status = info("status");
  core::Node why = core::Node::mapping();
  why.set("after", core::Node::string(
                       std::string(status == to_text(RunStatus::kRunning) ? to_text(RunStatus::kCrashed) : status)));
  if (const std::string reason = info("reason"); !reason.empty()) why.set("reason", core::Node::string(reason));
  database.prepare("INSERT INTO events(branch, step, time_ms, kind, data) VALUES(?, ?, ?, 'resume', ?)")
      .bind(1, reopened.start.branch)
      .bind(2, point.step)
      .bind(3, now_ms)
      .bind(4, core::to_json(why, -1))
      .run();
  put_info(database, "status", to_text(RunStatus::kRunning));
  database.execute("DELETE FROM info WHERE key IN ('reason', 'ended_ms')");
  Statement last = database.prepare("SELECT coalesce(max(row), 0) FROM metrics");
  last.step();
  reopened.start.last_row = last.integer(0);
  Statement series = database.prepare("SELECT id, name, context FROM series ORDER BY id");
  while (series.step()) {
    reopened.start.series.push_back({static_cast<MetricId>(series.integer(0)), series.text(1), series.text(2)});
  }
  transaction.commit();
  return reopened;
}

}  // namespace

std::string_view to_text(RunStatus status) { return kStatusTexts[static_cast<std::size_t>(status)]; }

std::vector<std::string> status_texts() { return {kStatusTexts.begin(), kStatusTexts.end()}; }

core::Result<std::unique_ptr<RunWriter>> RunWriter::create(const NewRun& run, const core::Clock& clock) {
  if (const auto made = core::make_folders(run.output_dir); !made) {
    return core::Failure{made.failure().message, kFolderHint, made.failure().exit_code};
  }
  constexpr int kTries = 8;  // another process may have taken the same id in the same millisecond, once in 32,768
  const std::int64_t now_ms = clock.wall_ms();
  std::string id, run_dir;
  for (int attempt = 0;; ++attempt) {
    id = run.id.empty() ? new_run_id(now_ms) : run.id;
    run_dir = (fs::path(run.output_dir) / (run.run_name + "-" + id)).string();
    if (mkdir(run_dir.c_str(), 0777) == 0) break;
    if (errno != EEXIST || attempt == kTries || !run.id.empty()) return cannot_make(run_dir);
  }
  // A run that was never created did not crash.
  const auto give_up = [&](core::Failure failure) {
    std::error_code ignored;
    fs::remove_all(run_dir, ignored);
    return failure;
  };
  for (const char* folder : {"/checkpoints", "/logs"}) {
    if (run.light) break;  // made on demand
    if (mkdir((run_dir + folder).c_str(), 0777) != 0) return give_up(cannot_make(run_dir + folder));
  }
  auto lease = Lease::acquire(run_dir, clock);
  if (!lease) return give_up(lease.failure());

  RunDbWriter::Start start;
  start.run_dir = run_dir;
  const auto made_by = [&](auto make) { return [=]() -> decltype(auto) { return make(run, run_dir, id, now_ms); }; };
  start.open_database = run.light ? made_by(make_light_databases) : made_by(make_databases);
  if (run.light) start.begin_in_memory = made_by(begin_in_memory);
  start.reopen_database = opener(run_dir);
  return std::unique_ptr<RunWriter>(std::make_unique<Writer>(id, std::move(lease).value(), std::move(start), clock));
}

core::Result<std::unique_ptr<RunWriter>> RunWriter::resume(const ResumePoint& point, const core::Clock& clock) {
  std::error_code ignored;
  if (!fs::exists(run_db_path(point.run_dir), ignored)) {
    return core::Failure{"there is no run in " + point.run_dir, "`roux runs list` shows the runs there are"};
  }
  auto lease = Lease::acquire(point.run_dir, clock);
  if (!lease) return lease.failure();
  try {
    Reopened reopened = open_branch(point, clock.wall_ms());
    reopened.start.open_database = reopened.start.reopen_database = opener(point.run_dir);
    return std::unique_ptr<RunWriter>(
        std::make_unique<Writer>(reopened.run_id, std::move(lease).value(), std::move(reopened.start), clock));
  } catch (const core::RunError& error) {
    lease.value()->release();
    return core::Failure{error.what(), error.hint().empty() ? kRecordHint : error.hint(), error.exit_code()};
  }
}

}  // namespace runner::store
