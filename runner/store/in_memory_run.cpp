#include "runner/store/in_memory_run.h"

#include "runner/store/database/schema.h"

namespace runner::store {

InMemoryRun::InMemoryRun() {
  Database database = Database::in_memory("");
  Transaction transaction(database);
  create_run_schema(database);
  transaction.commit();
  image_ = database.image();
}

Database& InMemoryRun::begin(const std::string& run_dir) {
  // What a long run has taken stays a part of the file, without a use.
  if (database_ && database_->image_bytes() > image_.size()) database_.reset();
  if (database_) {
    empty();
  } else {
    database_.emplace(Database::in_memory(image_));
    database_->cache_statements();
  }
  run_dir_ = run_dir;
  return *database_;
}

void InMemoryRun::empty() {
  Transaction transaction(*database_);
  for (const char* table : kRunTableNames) database_->prepare(std::string("DELETE FROM ") + table).run();
  transaction.commit();
}

std::optional<RunRecord> InMemoryRun::record_of(const std::string& run_dir, const std::vector<std::string>& metrics) {
  if (!database_ || run_dir != run_dir_) return std::nullopt;
  RunRecord record = read_record(*database_, run_dir, metrics);
  if (record.run.status == RunStatus::kRunning) return std::nullopt;
  return record;
}

}  // namespace runner::store
