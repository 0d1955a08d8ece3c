#include "runner/store/database/schema.h"

namespace runner::store {
namespace {

// `row` only grows: trackers' cursors and manifests point at it, and a point that replaces another gets a new one.
// A NULL value is NaN (SQLite cannot hold one); infinities are REALs. `series` of the context "train" are the loop's
// own. A branch holds the points after the step at which it left its parent; branch 0 has no parent. `artefacts` is a
// cache of what lies in the run's folder (checkpoints, traces): manifests are the truth.
constexpr const char* kRunTables = R"(
CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE branches(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES branches(id), step INTEGER NOT NULL,
                      time_ms INTEGER NOT NULL);
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL, context TEXT NOT NULL, UNIQUE(name, context));
CREATE TABLE metrics(row INTEGER PRIMARY KEY, branch INTEGER NOT NULL, series INTEGER NOT NULL, step INTEGER NOT NULL,
                     value REAL, time_ms INTEGER NOT NULL, UNIQUE(branch, series, step));
CREATE TABLE events(row INTEGER PRIMARY KEY, branch INTEGER NOT NULL, step INTEGER NOT NULL, time_ms INTEGER NOT NULL,
                    kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE artefacts(row INTEGER PRIMARY KEY, branch INTEGER NOT NULL, step INTEGER NOT NULL,
                       time_ms INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, data TEXT NOT NULL);
)";

// A cursor is the last row of metrics and of events that a tracker has taken.
constexpr const char* kAnnotationsTables = R"(
CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE notes(row INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE tags(tag TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE cursors(tracker TEXT PRIMARY KEY, metric_row INTEGER NOT NULL, event_row INTEGER NOT NULL,
                     state TEXT NOT NULL) WITHOUT ROWID;
)";

constexpr const char* kPutInfo = "INSERT OR REPLACE INTO info VALUES(?, ?)";

void create(Database& database, const char* tables, std::int64_t format) {
  database.execute(tables);
  database.execute(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
  database.execute(("PRAGMA user_version=" + std::to_string(format)).c_str());
}

}  // namespace

void create_run_schema(Database& database) { create(database, kRunTables, kRunFormat); }

void create_annotations_schema(Database& database) { create(database, kAnnotationsTables, kAnnotationsFormat); }

core::Result<void> check_format(const Database& database, std::int64_t format) {
  if (database.pragma("application_id") != kApplicationId) {
    return core::Failure{database.path() + " is not a database of roux", ""};
  }
  const std::int64_t there = database.pragma("user_version");
  if (there > format) {
    return core::Failure{database.path() + " has format " + std::to_string(there) +
                             ", this version of roux reads up to format " + std::to_string(format),
                         "use the version of roux that wrote it, or a newer one"};
  }
  if (there < format) {
    return core::Failure{
        database.path() + " has format " + std::to_string(there) + ", which no version of roux has written", ""};
  }
  return {};
}

bool is_empty(const Database& database) {
  Statement tables = database.prepare("SELECT count(*) FROM sqlite_master");
  return tables.step() && tables.integer(0) == 0;
}

void put_info(const Database& database, std::string_view key, std::string_view value) {
  database.prepare(kPutInfo).bind(1, key).bind(2, value).run();
}

void put_info(const Database& database, std::string_view key, std::int64_t value) {
  database.prepare(kPutInfo).bind(1, key).bind(2, value).run();
}

std::string run_db_path(const std::string& run_dir) { return run_dir + "/run.db"; }

std::string annotations_db_path(const std::string& run_dir) { return run_dir + "/annotations.db"; }

}  // namespace runner::store
