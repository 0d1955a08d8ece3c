#include "runner/sweep/study/sqlite_store.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/store/database/schema.h"

namespace runner::sweep {
namespace {

using store::Database;
using store::Statement;

void bind(Statement& statement, int index, const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return void(statement.bind(index, *integer));
  if (const auto* text = std::get_if<std::string>(&value)) return void(statement.bind(index, std::string_view(*text)));
  const auto* real = std::get_if<double>(&value);
  statement.bind(index, real != nullptr ? *real : std::numeric_limits<double>::quiet_NaN());
}

Row row_of(const Statement& statement) {
  std::vector<Value> values;
  for (int column = 0; column < statement.columns(); ++column) {
    switch (statement.type(column)) {
      case Statement::Type::kNull: values.emplace_back(); break;
      case Statement::Type::kInteger: values.emplace_back(statement.integer(column)); break;
      case Statement::Type::kReal: values.emplace_back(statement.real(column)); break;
      case Statement::Type::kText: values.emplace_back(statement.text(column)); break;
    }
  }
  return Row(std::move(values));
}

void set_pragmas(Database& database, const std::string& folder) {
  database.execute("PRAGMA busy_timeout=30000");  // other workers' transactions take milliseconds
  database.execute(store::wal_is_safe_in(folder) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
  database.execute("PRAGMA synchronous=NORMAL");  // a kill takes nothing back, and sync() says when a power cut cannot
}

}  // namespace

std::string study_db_path(const std::string& folder) { return folder + "/sweep.db"; }

SqliteStore::SqliteStore(std::string folder, Database database, const core::Clock& clock)
    : folder_(std::move(folder)), database_(std::move(database)), clock_(clock) {
  database_.cache_statements();
}

std::unique_ptr<SqliteStore> SqliteStore::create(const std::string& folder, std::int64_t format,
                                                 const core::Clock& clock,
                                                 const std::function<void(StudyStore&)>& set_up) {
  Database database(study_db_path(folder), Database::Mode::kCreate);
  set_pragmas(database, folder);
  std::unique_ptr<SqliteStore> made(new SqliteStore(folder, std::move(database), clock));
  made->transact([&] {
    made->database_.execute(("PRAGMA application_id=" + std::to_string(store::kApplicationId)).c_str());
    made->database_.execute(("PRAGMA user_version=" + std::to_string(format)).c_str());
    set_up(*made);
    return true;
  });
  return made;
}

std::unique_ptr<SqliteStore> SqliteStore::open(const std::string& folder, std::int64_t format,
                                               const core::Clock& clock) {
  // With read-only access to the folder a sweep can be shown, but not worked on.
  const bool may_write = access(study_db_path(folder).c_str(), W_OK) == 0 && access(folder.c_str(), W_OK) == 0;
  Database database(study_db_path(folder), may_write ? Database::Mode::kWrite : Database::Mode::kRead);
  store::check_format(database, format).value();
  if (may_write) set_pragmas(database, folder);
  return std::unique_ptr<SqliteStore>(new SqliteStore(folder, std::move(database), clock));
}

Rows SqliteStore::run(std::string_view sql, const std::vector<Value>& values) {
  Statement statement = database_.prepare(sql);
  for (std::size_t i = 0; i < values.size(); ++i) bind(statement, static_cast<int>(i) + 1, values[i]);
  Rows rows;
  while (statement.step()) rows.push_back(row_of(statement));
  return rows;
}

StudyStore::Written SqliteStore::transact(const std::function<bool()>& work) {
  store::Transaction transaction(database_);
  if (!work()) return Written::kNo;
  transaction.commit();
  return Written::kYes;
}

void SqliteStore::sync() {
  if (database_.has_moved()) {  // writes there would be lost
    throw core::RunError(study_db_path(folder_) + " was moved or deleted while the sweep was at work",
                         "the runs of its trials are where they were");
  }
  database_.execute("PRAGMA synchronous=FULL");
  transact([this] {
    run("UPDATE changes SET number = number + 1", {});  // a transaction that writes nothing syncs nothing
    return true;
  });
  database_.execute("PRAGMA synchronous=NORMAL");
}

std::string SqliteStore::worker_folder(std::int64_t worker) const {
  return folder_ + "/workers/" + std::to_string(worker);
}

void SqliteStore::register_worker(std::int64_t worker) {
  core::make_folders(worker_folder(worker)).value();
  lease_ = store::Lease::acquire(worker_folder(worker), clock_).value();
}

bool SqliteStore::heartbeat(std::int64_t) { return lease_->heartbeat(clock_); }

void SqliteStore::unregister_worker(std::int64_t) { lease_->release(); }

bool SqliteStore::is_alive(std::int64_t worker) { return store::live_owner(worker_folder(worker), clock_).has_value(); }

}  // namespace runner::sweep
