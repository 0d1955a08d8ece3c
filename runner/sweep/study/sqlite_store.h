#pragma once

#include <memory>
#include <string>

#include "runner/core/clock.h"
#include "runner/store/database/sqlite.h"
#include "runner/store/lease.h"
#include "runner/sweep/study/study_store.h"

namespace runner::sweep {

/// `sweep.db` in the sweep's folder. A worker holds the lease of `workers/NUMBER` beside it, so the kernel tells the
/// others of one host at once that it is dead, and its heartbeat those of other hosts.
class SqliteStore final : public StudyStore {
 public:
  /// Runs `set_up` in the transaction that makes the file. RunError where that does not work.
  static std::unique_ptr<SqliteStore> create(const std::string& folder, std::int64_t format, const core::Clock& clock,
                                             const std::function<void(StudyStore&)>& set_up);
  /// RunError when the file has another format. Writes fail if it is read-only.
  static std::unique_ptr<SqliteStore> open(const std::string& folder, std::int64_t format, const core::Clock& clock);

  Rows run(std::string_view sql, const std::vector<Value>& values) override;
  Written transact(const std::function<bool()>& work) override;
  void sync() override;
  std::int64_t now_ms() override { return clock_.wall_ms(); }
  void register_worker(std::int64_t worker) override;
  bool heartbeat(std::int64_t worker) override;
  void unregister_worker(std::int64_t worker) override;
  bool is_alive(std::int64_t worker) override;
  void set_lease(std::int64_t) override {}
  void set_outage_handler(OutageHandler) override {}  // retrying a file does not help

 private:
  SqliteStore(std::string folder, store::Database database, const core::Clock& clock);
  std::string worker_folder(std::int64_t worker) const;

  std::string folder_;
  store::Database database_;
  const core::Clock& clock_;
  std::unique_ptr<store::Lease> lease_;
};

std::string study_db_path(const std::string& folder);

}  // namespace runner::sweep
