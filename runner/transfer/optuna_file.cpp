#include "runner/transfer/optuna_file.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/store/database/sqlite.h"

namespace runner::transfer {
namespace {

using core::Node;
using store::Database;
using store::Statement;
using store::Transaction;

// As Optuna 5.0.0 makes them (optuna/storages/_rdb/models.py); `alembic_version` has not changed since 3.2.
constexpr const char* kTables = R"(
CREATE TABLE studies(study_id INTEGER NOT NULL PRIMARY KEY, study_name VARCHAR(512) NOT NULL);
CREATE UNIQUE INDEX ix_studies_study_name ON studies(study_name);
CREATE TABLE version_info(version_info_id INTEGER NOT NULL PRIMARY KEY CHECK(version_info_id = 1),
                          schema_version INTEGER, library_version VARCHAR(256));
CREATE TABLE study_directions(study_direction_id INTEGER NOT NULL PRIMARY KEY, direction VARCHAR(8) NOT NULL,
                              study_id INTEGER NOT NULL REFERENCES studies(study_id), objective INTEGER NOT NULL,
                              UNIQUE(study_id, objective));
CREATE TABLE study_user_attributes(study_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
                                   study_id INTEGER REFERENCES studies(study_id), "key" VARCHAR(512), value_json TEXT,
                                   UNIQUE(study_id, "key"));
CREATE TABLE study_system_attributes(study_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
                                     study_id INTEGER REFERENCES studies(study_id), "key" VARCHAR(512), value_json TEXT,
                                     UNIQUE(study_id, "key"));
CREATE TABLE trials(trial_id INTEGER NOT NULL PRIMARY KEY, number INTEGER,
                    study_id INTEGER REFERENCES studies(study_id), state VARCHAR(8) NOT NULL, datetime_start DATETIME,
                    datetime_complete DATETIME);
CREATE INDEX ix_trials_study_id ON trials(study_id);
CREATE TABLE trial_user_attributes(trial_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
                                   trial_id INTEGER REFERENCES trials(trial_id), "key" VARCHAR(512), value_json TEXT,
                                   UNIQUE(trial_id, "key"));
CREATE TABLE trial_system_attributes(trial_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
                                     trial_id INTEGER REFERENCES trials(trial_id), "key" VARCHAR(512), value_json TEXT,
                                     UNIQUE(trial_id, "key"));
CREATE TABLE trial_params(param_id INTEGER NOT NULL PRIMARY KEY, trial_id INTEGER REFERENCES trials(trial_id),
                          param_name VARCHAR(512), param_value FLOAT, distribution_json TEXT,
                          UNIQUE(trial_id, param_name));
CREATE TABLE trial_values(trial_value_id INTEGER NOT NULL PRIMARY KEY,
                          trial_id INTEGER NOT NULL REFERENCES trials(trial_id), objective INTEGER NOT NULL,
                          value FLOAT, value_type VARCHAR(7) NOT NULL, UNIQUE(trial_id, objective));
CREATE TABLE trial_intermediate_values(trial_intermediate_value_id INTEGER NOT NULL PRIMARY KEY,
                                       trial_id INTEGER NOT NULL REFERENCES trials(trial_id), step INTEGER NOT NULL,
                                       intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL,
                                       UNIQUE(trial_id, step));
CREATE TABLE trial_heartbeats(trial_heartbeat_id INTEGER NOT NULL PRIMARY KEY,
                              trial_id INTEGER NOT NULL UNIQUE REFERENCES trials(trial_id),
                              heartbeat DATETIME NOT NULL);
CREATE TABLE alembic_version(version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO version_info VALUES(1, 12, '5.0.0');
INSERT INTO alembic_version VALUES('v3.2.0.a');
)";

// Optuna's text has six digits of a second, and it takes as many of them as there are for the number of microseconds.
constexpr const char* kInsertTrial =
    "INSERT INTO trials(number, study_id, state, datetime_start, datetime_complete) VALUES(?, 1, ?, "
    "CASE WHEN ?3 > 0 THEN strftime('%Y-%m-%d %H:%M:%f', ?3 / 1000.0, 'unixepoch') || '000' END, "
    "CASE WHEN ?4 > 0 THEN strftime('%Y-%m-%d %H:%M:%f', ?4 / 1000.0, 'unixepoch') || '000' END)";
constexpr const char* kSelectTrials =
    "SELECT trial_id, state, round((julianday(datetime_start) - 2440587.5) * 86400000), "
    "round((julianday(datetime_complete) - 2440587.5) * 86400000) FROM trials WHERE study_id = ? ORDER BY number";

/// What stands beside a number in the tables; the number itself is NULL unless it is finite.
const char* type_of(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INF_POS" : "INF_NEG";
  return "FINITE";
}

double value_of(const Statement& rows, int number, int type) {
  const std::string kind = rows.text(type);
  if (kind == "NAN") return std::numeric_limits<double>::quiet_NaN();
  if (kind == "INF_POS") return std::numeric_limits<double>::infinity();
  if (kind == "INF_NEG") return -std::numeric_limits<double>::infinity();
  return rows.real(number);
}

double finite_or_null(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();  // which SQLite keeps as NULL
}

constexpr const char* kMetricNames = "study:metric_names";

void write_metric_names(const Database& database, const std::vector<std::string>& names) {
  if (names.empty()) return;
  Node list = Node::sequence();
  for (const std::string& name : names) list.items().push_back(Node::string(name));
  database.prepare("INSERT INTO study_system_attributes(study_id, \"key\", value_json) VALUES(1, ?, ?)")
      .bind(1, kMetricNames)
      .bind(2, core::to_json(list, -1))
      .run();
}

std::vector<std::string> read_metric_names(const Database& database, std::int64_t study) {
  Statement rows =
      database.prepare("SELECT value_json FROM study_system_attributes WHERE study_id = ? AND \"key\" = ?");
  rows.bind(1, study).bind(2, kMetricNames);
  std::vector<std::string> names;
  if (!rows.step()) return names;
  const Node list = core::parse_json(rows.text(0)).value();
  for (const Node& name : list.items()) names.push_back(name.as_string());
  return names;
}

void write_trial(const Database& database, std::int64_t id, const OptunaTrial& trial) {
  database.prepare(kInsertTrial)
      .bind(1, id - 1)
      .bind(2, trial.state)
      .bind(3, trial.started_ms)
      .bind(4, trial.ended_ms)
      .run();
  for (const OptunaParameter& one : trial.parameters) {
    database
        .prepare("INSERT INTO trial_params(trial_id, param_name, param_value, distribution_json) VALUES(?, ?, ?, ?)")
        .bind(1, id)
        .bind(2, one.name)
        .bind(3, one.value)
        .bind(4, core::to_json(one.distribution, -1))
        .run();
  }
  for (std::size_t i = 0; i < trial.values.size(); ++i) {
    database.prepare("INSERT INTO trial_values(trial_id, objective, value, value_type) VALUES(?, ?, ?, ?)")
        .bind(1, id)
        .bind(2, static_cast<std::int64_t>(i))
        .bind(3, finite_or_null(trial.values[i]))
        .bind(4, type_of(trial.values[i]))
        .run();
  }
  for (const store::SeriesPoint& point : trial.curve) {
    database
        .prepare(
            "INSERT INTO trial_intermediate_values(trial_id, step, intermediate_value, intermediate_value_type) "
            "VALUES(?, ?, ?, ?)")
        .bind(1, id)
        .bind(2, point.step)
        .bind(3, finite_or_null(point.value))
        .bind(4, type_of(point.value))
        .run();
  }
  for (const auto& [key, value] : trial.attributes) {
    database.prepare("INSERT INTO trial_user_attributes(trial_id, \"key\", value_json) VALUES(?, ?, ?)")
        .bind(1, id)
        .bind(2, key)
        .bind(3, core::to_json(value, -1))
        .run();
  }
}

/// The number of the study, and what it is called.
std::pair<std::int64_t, std::string> find(const Database& database, const std::string& path, const std::string& name) {
  std::vector<std::pair<std::int64_t, std::string>> all;
  Statement rows = database.prepare("SELECT study_id, study_name FROM studies ORDER BY study_id");
  std::string known;
  while (rows.step()) {
    all.emplace_back(rows.integer(0), rows.text(1));
    known += (known.empty() ? "" : ", ") + all.back().second;
    if (all.back().second == name) return all.back();
  }
  if (all.empty()) throw core::RunError(path + " has no study");
  if (name.empty() && all.size() == 1) return all.front();
  throw core::RunError(name.empty() ? path + " has " + std::to_string(all.size()) + " studies; select one with --study"
                                    : path + " has no study called \"" + name + "\"",
                       "--study must be one of " + known);
}

/// Calls `take` with the trial that each row of a table belongs to.
template <typename Take>
void each_row(const Database& database, const std::string& query, std::map<std::int64_t, OptunaTrial*>& by_id,
              const Take& take) {
  Statement rows = database.prepare(query);
  while (rows.step()) {
    if (const auto trial = by_id.find(rows.integer(0)); trial != by_id.end()) take(rows, *trial->second);
  }
}

OptunaStudy read(const std::string& path, const std::string& name) {
  const Database database(path, Database::Mode::kRead);
  const auto [id, study_name] = find(database, path, name);
  OptunaStudy study;
  study.name = study_name;
  Statement directions =
      database.prepare("SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective");
  directions.bind(1, id);
  while (directions.step()) study.maximize.push_back(directions.text(0) == "MAXIMIZE");
  study.metric_names = read_metric_names(database, id);
  std::vector<std::int64_t> ids;
  Statement rows = database.prepare(kSelectTrials);
  rows.bind(1, id);
  while (rows.step()) {
    OptunaTrial trial;
    ids.push_back(rows.integer(0));
    trial.state = rows.text(1);
    if (!rows.is_null(2)) trial.started_ms = static_cast<std::int64_t>(rows.real(2));
    if (!rows.is_null(3)) trial.ended_ms = static_cast<std::int64_t>(rows.real(3));
    study.trials.push_back(std::move(trial));
  }
  std::map<std::int64_t, OptunaTrial*> by_id;
  for (std::size_t i = 0; i < ids.size(); ++i) by_id[ids[i]] = &study.trials[i];
  each_row(database, "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params ORDER BY param_id",
           by_id, [](const Statement& row, OptunaTrial& trial) {
             trial.parameters.push_back({row.text(1), row.real(2), core::parse_json(row.text(3)).value()});
           });
  each_row(database, "SELECT trial_id, value, value_type FROM trial_values ORDER BY trial_id, objective", by_id,
           [](const Statement& row, OptunaTrial& trial) { trial.values.push_back(value_of(row, 1, 2)); });
  each_row(database,
           "SELECT trial_id, step, intermediate_value, intermediate_value_type FROM trial_intermediate_values "
           "ORDER BY trial_id, step",
           by_id, [](const Statement& row, OptunaTrial& trial) {
             trial.curve.push_back({row.integer(1), value_of(row, 2, 3)});
           });
  each_row(database, "SELECT trial_id, \"key\", value_json FROM trial_user_attributes", by_id,
           [](const Statement& row, OptunaTrial& trial) {
             trial.attributes.emplace_back(row.text(1), core::parse_json(row.text(2)).value());
           });
  return study;
}

}  // namespace

core::Result<void> write_optuna(const std::string& path, const OptunaStudy& study) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    return core::Failure{path + " already exists", "use another file, or remove it first"};
  return core::attempt([&] {
    Database database(path, Database::Mode::kCreate);
    Transaction transaction(database);
    database.execute(kTables);
    database.prepare("INSERT INTO studies VALUES(1, ?)").bind(1, study.name).run();
    for (std::size_t i = 0; i < study.maximize.size(); ++i) {
      database.prepare("INSERT INTO study_directions(direction, study_id, objective) VALUES(?, 1, ?)")
          .bind(1, study.maximize[i] ? "MAXIMIZE" : "MINIMIZE")
          .bind(2, static_cast<std::int64_t>(i))
          .run();
    }
    write_metric_names(database, study.metric_names);
    for (std::size_t i = 0; i < study.trials.size(); ++i)
      write_trial(database, static_cast<std::int64_t>(i + 1), study.trials[i]);
    transaction.commit();
  });
}

core::Result<OptunaStudy> read_optuna(const std::string& path, const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return core::Failure{"no such file: " + path};
  return core::attempt([&] { return read(path, name); });
}

}  // namespace runner::transfer
