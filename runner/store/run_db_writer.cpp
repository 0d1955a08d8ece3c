#include "runner/store/run_db_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/units.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/unsynced_file.h"

namespace runner::store {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

/// SqliteError as for run.db itself, to be retried in the same way. A deleted file needs no sync, and some network file
/// systems refuse to sync a folder.
void sync_path(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int error_number = descriptor < 0 || fsync(descriptor) == 0 ? 0 : errno;
  if (descriptor < 0 && errno != ENOENT) error_number = errno;
  if (descriptor >= 0) close(descriptor);
  if (error_number != 0 && error_number != EINVAL) {
    throw SqliteError(path, SQLITE_IOERR_FSYNC, std::strerror(error_number));
  }
}

constexpr const char* kFromCheckpoint =
    " `roux run RECIPE --new --checkpoint FOLDER` continues from one of its checkpoints";

core::RunError overwritten(const std::string& path) {
  return core::RunError("another program has overwritten or cut " + path + " during the run",
                        std::string("its metrics are lost;") + kFromCheckpoint);
}

/// 0 when there is no such file.
ino_t inode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

RunDbWriter::RunDbWriter(Start start, Lease& lease, const core::Clock& clock)
    : start_(std::move(start)),
      lease_(lease),
      clock_(clock),
      branch_(start_.branch),
      row_(start_.last_row),
      begun_ns_(clock.monotonic_ns()) {
  for (const Batch::Series& series : start_.series) ids_[{series.name, series.context}] = series.id;
  durable_row_ = row_;
  handed_row_ = row_;
  heartbeat_ns_ = clock_.monotonic_ns();
  if (!is_light()) begin_thread();
}

void RunDbWriter::begin_thread() {
  std::call_once(thread_begun_, [this] {
    // Signals are handled by the loop.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
      has_thread_ = true;
    } catch (const std::system_error& refused) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw core::RunError(std::string("cannot start the thread that writes run.db: ") + refused.code().message(),
                           "`ulimit -u` shows the limit");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  });
}

void RunDbWriter::begin_thread_if_due() {
  if (has_thread_.load(std::memory_order_relaxed)) return;
  if (clock_.monotonic_ns() - begun_ns_ >= kCommitIntervalMs * kNsPerMs) begin_thread();
}

RunDbWriter::~RunDbWriter() {
  if (thread_.joinable() || !(has_thread_ || ended_)) finish(RunStatus::kFailed, "the process exited without a status");
}

MetricId RunDbWriter::metric(const std::string& name, const std::string& context) {
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = ids_.try_emplace({name, context}, static_cast<MetricId>(ids_.size()));
  if (is_new) pending_.series.push_back({at->second, name, context});
  return at->second;
}

std::int64_t RunDbWriter::branch() const {
  const std::lock_guard lock(mutex_);
  return branch_;
}

void RunDbWriter::rewind(std::int64_t step) {
  const std::int64_t now = clock_.wall_ms();
  const std::lock_guard lock(mutex_);
  throw_if_failed_locked();
  pending_.branches.push_back({branch_ + 1, branch_, step, now});
  ++branch_;
}

void RunDbWriter::log(std::int64_t step, std::span<const MetricValue> values) {
  begin_thread_if_due();
  const std::int64_t now = clock_.wall_ms();
  std::unique_lock lock(mutex_);
  throw_if_failed_locked();
  throw_if_full_for_too_long_locked();
  wait_for_room(lock, values.size());
  const bool was_short = pending_.points.size() < kWakePoints;
  for (const MetricValue& value : values) {
    pending_.points.push_back({step, now, value.value, value.id, static_cast<std::int32_t>(branch_)});
  }
  handed_row_ += static_cast<std::int64_t>(values.size());
  if (was_short && pending_.points.size() >= kWakePoints) work_.notify_one();
}

void RunDbWriter::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t points) {
  const auto has_room = [&] { return pending_.points.size() + points <= kQueuePointsMax || failure_; };
  if (has_room()) return;
  begin_thread();
  waited_.fetch_add(static_cast<std::int64_t>(points), std::memory_order_relaxed);
  work_.notify_one();
  while (!room_.wait_for(lock, std::chrono::milliseconds(kRetryMs), has_room)) {
    throw_if_full_for_too_long_locked();
    if (full_since_ns_ < 0 || !disk_timeout_.give_up || !disk_timeout_.give_up()) continue;
    throw core::RunError("the disk does not accept " + run_db_path(start_.run_dir) + ", and the metrics buffer is full",
                         "free some space; the same command then resumes", core::kExitResumable);
  }
  throw_if_failed_locked();
}

void RunDbWriter::throw_if_full_for_too_long_locked() const {
  if (full_since_ns_ < 0) return;
  const std::int64_t waited_ms = (clock_.monotonic_ns() - full_since_ns_) / kNsPerMs;
  if (waited_ms < disk_timeout_.ms) return;
  throw core::RunError("the disk has not accepted " + run_db_path(start_.run_dir) + " for " +
                           core::format_duration(static_cast<double>(waited_ms) / 1000.0),
                       std::string(disk_timeout_.ms > 0 ? "free some space, or raise checkpoint.full_disk_timeout"
                                                        : "free some space, or set checkpoint.on_full_disk: wait") +
                           "; the same command then resumes",
                       core::kExitResumable);
}

void RunDbWriter::set_disk_timeout(DiskTimeout timeout) {
  const std::lock_guard lock(mutex_);
  disk_timeout_ = std::move(timeout);
}

void RunDbWriter::event(const std::string& kind, std::int64_t step, std::string data) {
  begin_thread_if_due();
  const std::int64_t now = clock_.wall_ms();
  const std::lock_guard lock(mutex_);
  throw_if_failed_locked();
  pending_.events.push_back({step, now, branch_, kind, std::move(data)});
}

void RunDbWriter::artefact(const std::string& kind, std::int64_t step, std::string path, std::string data) {
  const std::int64_t now = clock_.wall_ms();
  const std::lock_guard lock(mutex_);
  throw_if_failed_locked();
  pending_.artefacts.push_back({step, now, branch_, kind, std::move(path), std::move(data)});
}

void RunDbWriter::set_summary(std::string json) {
  const std::lock_guard lock(mutex_);
  throw_if_failed_locked();
  pending_.summary = std::move(json);
}

std::int64_t RunDbWriter::last_row() const {
  const std::lock_guard lock(mutex_);
  return handed_row_;
}

std::int64_t RunDbWriter::flush_durable(std::int64_t timeout_ms) {
  begin_thread();
  std::unique_lock lock(mutex_);
  throw_if_failed_locked();
  const std::int64_t ticket = ++flush_wanted_;
  work_.notify_one();
  while (flush_done_ < ticket) {
    done_.wait_for(lock, std::chrono::milliseconds(kRetryMs));
    throw_if_failed_locked();
    if (stuck_since_ns_ >= 0 && clock_.monotonic_ns() - stuck_since_ns_ > timeout_ms * kNsPerMs) {
      const std::string path = run_db_path(start_.run_dir);
      if (full_since_ns_ < 0) {
        throw core::RunError("another program holds a lock on " + path,
                             "stop it; the same command then resumes from the newest checkpoint", core::kExitResumable);
      }
      throw core::RunError("the disk does not accept " + path,
                           "free some space; the same command then resumes from the newest checkpoint",
                           core::kExitResumable);
    }
  }
  return durable_row_;
}

bool RunDbWriter::finish(RunStatus status, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    pending_.ending = Batch::Ending{status, reason, clock_.wall_ms()};
    if (!is_light()) ++flush_wanted_;
  }
  work_.notify_one();
  if (has_thread_) {
    if (thread_.joinable()) thread_.join();
  } else {
    run();
  }
  return complete_ && !failure_;
}

void RunDbWriter::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  throw_if_failed_locked();
}

void RunDbWriter::throw_if_failed_locked() const {
  if (failure_) throw core::RunError(*failure_);
}

void RunDbWriter::fail(const std::string& message, const std::string& hint, int exit_code) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_.emplace(message, hint, exit_code);
  room_.notify_all();
  done_.notify_all();
}

void RunDbWriter::run() {
  try {
    while (true) {
      Batch batch = next_batch();
      if (!commit_with_retry(batch)) break;
      if (!heartbeat()) break;
      if (batch.ending) {
        join_files();
        database_.reset();
        verify_record();
        break;
      }
    }
  } catch (const SqliteError& error) {
    // A write may meet the damage before check_record() does.
    const core::RunError& known = error;
    const core::RunError seen = opened_ && error.is_corrupt() ? overwritten(run_db_path(start_.run_dir)) : known;
    fail(seen.what(), seen.hint(), seen.exit_code());
  } catch (const core::RunError& error) {
    fail(error.what(), error.hint(), error.exit_code());
  } catch (const std::exception& error) {
    fail(start_.run_dir + ": " + error.what(), "", core::kExitFailed);
  }
  database_.reset();
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

/// Back to one file, readable without write access. Not while there are readers; complete either way.
void RunDbWriter::join_files() {
  if (!database_) return;  // it was written as one
  try {
    database_->execute("PRAGMA journal_mode=DELETE");
  } catch (const SqliteError& error) {
    if (!error.is_transient()) throw;
  }
}

/// After the commit: a folder that was moved takes along what was logged until then.
void RunDbWriter::check_record() {
  const std::string path = run_db_path(start_.run_dir);
  struct stat there {};
  const int error = stat(path.c_str(), &there) == 0 ? 0 : errno;
  if (error != 0 && error != ENOENT && error != ENOTDIR) return;  // a disk that does not respond proves nothing
  if (error != 0 || database_->has_moved()) {
    // Whoever writes a file into a folder that is gone may make the folder again.
    if (inode_of(start_.run_dir) != folder_) {
      throw core::RunError("the run's folder " + start_.run_dir + " was moved or removed during the run",
                           "where it was moved, `roux resume PATH` continues from its last checkpoint");
    }
    throw core::RunError(path + " was moved, removed or replaced during the run",
                         "move it back for `roux resume`; else" + std::string(kFromCheckpoint));
  }
  if (!database_->is_whole(record_bytes_)) throw overwritten(path);
}

/// Checks the disk at the end: parts cached by this process may be overwritten there.
void RunDbWriter::verify_record() const {
  if (record_bytes_ == 0 || record_bytes_ > kVerifyBytesMax) return;
  const std::string path = run_db_path(start_.run_dir);
  try {
    const Database database(path, Database::Mode::kRead);
    Statement check = database.prepare("PRAGMA quick_check(1)");
    if (check.step() && check.text(0) == "ok") return;
  } catch (const SqliteError& error) {
    if (error.is_transient()) return;
    if (!error.is_corrupt()) throw;
  }
  throw overwritten(path);
}

Batch RunDbWriter::next_batch() {
  std::unique_lock lock(mutex_);
  if (database_) {
    work_.wait_for(lock, std::chrono::milliseconds(kCommitIntervalMs), [&] {
      return pending_.ending || flush_wanted_ > flush_done_ || pending_.points.size() >= kWakePoints;
    });
  }
  Batch batch = std::exchange(pending_, {});
  batch.flush_ticket = flush_wanted_ > flush_done_ ? flush_wanted_ : 0;
  room_.notify_all();
  return batch;
}

bool RunDbWriter::commit_with_retry(Batch& batch) {
  const std::int64_t since_ns = clock_.monotonic_ns();
  bool told = false, refuses = false;
  while (true) {
    try {
      if (!opened_ && is_light() && batch.ending && batch.flush_ticket == 0) {
        write_whole(batch);
        break;
      }
      const bool is_new = !database_;
      if (is_new) {
        database_.emplace(opened_ ? start_.reopen_database() : start_.open_database());
        database_->cache_statements();
        if (!opened_) folder_ = inode_of(start_.run_dir);
      }
      opened_ = true;
      const bool writes = !batch.empty() || batch.flush_ticket > 0;
      if (writes) commit(batch);
      if (writes || !is_new) check_record();  // a record that was opened this moment is in its place
      break;
    } catch (const SqliteError& error) {
      if (!error.is_transient()) throw;
      refuses = error.is_disk_error();
      if (!told) core::log_warning(std::string(error.what()) + "; metrics are kept in memory meanwhile");
      told = true;
      // A refused unlock leaves a connection that waits for itself; a new one starts clean.
      if (!error.is_full()) database_.reset();
    }
    if (!heartbeat()) return false;
    std::unique_lock lock(mutex_);
    stuck_since_ns_ = since_ns;
    full_since_ns_ = refuses ? since_ns : -1;
    if (give_up(batch, since_ns)) return false;
    work_.wait_for(lock, std::chrono::milliseconds(kRetryMs));
  }
  if (told) core::log_info(run_db_path(start_.run_dir) + " accepts metrics again, nothing was lost");
  const std::lock_guard lock(mutex_);
  stuck_since_ns_ = full_since_ns_ = -1;
  if (batch.flush_ticket > 0) {
    flush_done_ = batch.flush_ticket;
    durable_row_ = row_;
  }
  if (batch.ending) complete_ = true;
  done_.notify_all();
  return true;
}

bool RunDbWriter::give_up(const Batch& batch, std::int64_t since_ns) const {
  const auto& ending = batch.ending ? batch.ending : pending_.ending;
  if (!ending) return false;
  const std::int64_t waited_ms = (clock_.monotonic_ns() - since_ns) / kNsPerMs;
  const bool waits_longer = ending->status == RunStatus::kFinished && full_since_ns_ >= 0 &&
                            disk_timeout_.ms != DiskTimeout{}.ms;  // else the timeout is unknown
  return waited_ms >= (waits_longer ? std::max(disk_timeout_.ms, kFinishTimeoutMs) : kFinishTimeoutMs);
}

/// Of a run that ended before there was a file: without the journal that a reader beside us would need.
void RunDbWriter::write_whole(Batch& batch) {
  row_ = start_.last_row;  // once more, where the disk has refused
  Database& tables = start_.begin_in_memory();
  Transaction transaction(tables);
  row_ = put(tables, batch);
  transaction.commit();
  write_unsynced(run_db_path(start_.run_dir), tables.image());
}

void RunDbWriter::commit(Batch& batch) {
  const bool durable = batch.flush_ticket > 0;
  // EXTRA: where the journal is a file that a commit deletes, the deletion has to reach the disk too.
  if (durable) database_->execute("PRAGMA synchronous=EXTRA");
  {
    Transaction transaction(*database_);
    const std::int64_t row = put(*database_, batch);
    // A transaction that writes is what SQLite syncs: without one, rows committed earlier would stay in the page cache.
    if (durable) put_info(*database_, "flushed_ms", clock_.wall_ms());
    transaction.commit();
    row_ = row;
  }
  if (!durable) return;
  // Written rows must not be written again when the rest is retried.
  batch.points.clear();
  batch.events.clear();
  batch.artefacts.clear();
  sync_folder_once();
  database_->execute("PRAGMA synchronous=NORMAL");
}

/// Within the caller's transaction. The last row of metrics, once that is committed.
std::int64_t RunDbWriter::put(const Database& database, const Batch& batch) const {
  for (const Batch::Series& series : batch.series) {
    database.prepare("INSERT OR REPLACE INTO series VALUES(?, ?, ?)")
        .bind(1, std::int64_t{series.id})
        .bind(2, series.name)
        .bind(3, series.context)
        .run();
  }
  for (const Batch::Branch& branch : batch.branches) {
    database.prepare("INSERT OR REPLACE INTO branches VALUES(?, ?, ?, ?)")
        .bind(1, branch.id)
        .bind(2, branch.parent)
        .bind(3, branch.step)
        .bind(4, branch.time_ms)
        .run();
  }
  std::int64_t row = row_;
  Statement insert_point = database.prepare("INSERT OR REPLACE INTO metrics VALUES(?, ?, ?, ?, ?, ?)");
  for (const Batch::Point& point : batch.points) {
    insert_point.bind(1, ++row)
        .bind(2, std::int64_t{point.branch})
        .bind(3, std::int64_t{point.id})
        .bind(4, point.step)
        .bind(5, point.value)
        .bind(6, point.time_ms)
        .run();
  }
  for (const Batch::Event& event : batch.events) {
    database.prepare("INSERT INTO events(branch, step, time_ms, kind, data) VALUES(?, ?, ?, ?, ?)")
        .bind(1, event.branch)
        .bind(2, event.step)
        .bind(3, event.time_ms)
        .bind(4, event.kind)
        .bind(5, event.data)
        .run();
  }
  for (const Batch::Artefact& artefact : batch.artefacts) {
    database.prepare("INSERT INTO artefacts(branch, step, time_ms, kind, path, data) VALUES(?, ?, ?, ?, ?, ?)")
        .bind(1, artefact.branch)
        .bind(2, artefact.step)
        .bind(3, artefact.time_ms)
        .bind(4, artefact.kind)
        .bind(5, artefact.path)
        .bind(6, artefact.data)
        .run();
  }
  if (batch.summary) put_info(database, "summary", *batch.summary);
  if (batch.ending) {
    put_info(database, "status", to_text(batch.ending->status));
    put_info(database, "reason", batch.ending->reason);
    put_info(database, "ended_ms", batch.ending->time_ms);
  }
  return row;
}

/// The run's folder and the small files in it, which were written without a sync at the start. Not the databases:
/// closing a second descriptor of one would drop SQLite's locks on it.
void RunDbWriter::sync_folder_once() {
  if (folder_durable_) return;
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(start_.run_dir, ignored), end; at != end; at.increment(ignored)) {
    if (at->is_directory(ignored)) {
      if (at->path().filename() != "recipe") at.disable_recursion_pending();
    } else if (at->path().filename().string().find(".db") == std::string::npos) {
      sync_path(at->path());
    }
  }
  sync_path(start_.run_dir);
  sync_path(fs::path(start_.run_dir).parent_path());
  // The pages that were written without a sync are in run.db itself, so the commit's sync of the journal is not enough.
  // A reader may be in the way of that; then it is tried again.
  if (database_->pragma("wal_checkpoint(FULL)") != 0) {
    throw SqliteError(database_->path(), SQLITE_BUSY, "a reader holds the journal");
  }
  folder_durable_ = true;
}

bool RunDbWriter::heartbeat() {
  const std::int64_t now_ns = clock_.monotonic_ns();
  if (now_ns - heartbeat_ns_ < kHeartbeatMs * kNsPerMs) return true;
  heartbeat_ns_ = now_ns;
  if (lease_.heartbeat(clock_)) return true;
  fail(start_.run_dir + " was taken over by another process while this one did not respond",
       "the run continues there; this process stops writing", core::kExitFailed);
  return false;
}

}  // namespace runner::store
