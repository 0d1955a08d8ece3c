#include "runner/sweep/study.h"

#include <cmath>
#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/store/schema.h"

namespace runner::sweep {
namespace {

using store::Database;
using store::Statement;
using store::Transaction;

constexpr std::int64_t kStudyFormat = 1;

// A choice's coordinate is its position; a NULL coordinate plays no part in the variant. `waiting` and `running` trials
// belong to their worker as long as that lives. `curve` is the metric as the trial reported it, once it has ended.
constexpr const char* kTables = R"(
CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE workers(id INTEGER PRIMARY KEY, since_ms INTEGER NOT NULL);
CREATE TABLE variants(number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE coordinates(variant INTEGER NOT NULL REFERENCES variants(number), dimension INTEGER NOT NULL, value REAL,
                         PRIMARY KEY(variant, dimension)) WITHOUT ROWID;
CREATE TABLE trials(number INTEGER PRIMARY KEY, variant INTEGER NOT NULL REFERENCES variants(number),
                    replicate INTEGER NOT NULL, state TEXT NOT NULL, value REAL, step INTEGER NOT NULL DEFAULT 0,
                    run TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', retries INTEGER NOT NULL DEFAULT 0,
                    shrink INTEGER NOT NULL DEFAULT 0, worker INTEGER, started_ms INTEGER NOT NULL DEFAULT 0,
                    ended_ms INTEGER NOT NULL DEFAULT 0, UNIQUE(variant, replicate));
CREATE TABLE curve(trial INTEGER NOT NULL REFERENCES trials(number), step INTEGER NOT NULL, value REAL,
                   PRIMARY KEY(trial, step)) WITHOUT ROWID;
)";

constexpr TrialState kStates[] = {TrialState::kWaiting, TrialState::kRunning, TrialState::kComplete,
                                  TrialState::kPruned, TrialState::kFailed};

TrialState state_of(const std::string& text) {
  for (const TrialState state : kStates) {
    if (text == to_text(state)) return state;
  }
  throw core::RunError("sweep.db has a trial in the state \"" + text + "\", which this roux does not know");
}

void put(const Database& database, std::string_view key, std::string_view value) {
  database.prepare("INSERT OR REPLACE INTO info VALUES(?, ?)").bind(1, key).bind(2, value).run();
}

void put(const Database& database, std::string_view key, std::int64_t value) {
  database.prepare("INSERT OR REPLACE INTO info VALUES(?, ?)").bind(1, key).bind(2, value).run();
}

void set_up(Database& database, const std::string& folder) {
  database.execute("PRAGMA busy_timeout=30000");  // other workers' transactions take milliseconds
  database.execute(store::wal_is_safe_in(folder) ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE");
  database.execute("PRAGMA synchronous=FULL");  // what was said to be done stays done, whatever becomes of the machine
}

}  // namespace

std::string study_db_path(const std::string& folder) { return folder + "/sweep.db"; }

std::string_view to_text(TrialState state) {
  switch (state) {
    case TrialState::kWaiting: return "waiting";
    case TrialState::kRunning: return "running";
    case TrialState::kComplete: return "complete";
    case TrialState::kPruned: return "pruned";
    case TrialState::kFailed: return "failed";
  }
  return "";
}

Study::Study(std::string folder, Database database) : folder_(std::move(folder)), database_(std::move(database)) {}

core::Result<std::unique_ptr<Study>> Study::create(const std::string& folder, const StudyInfo& info) {
  return core::attempt([&] {
    Database database(study_db_path(folder), Database::Mode::kCreate);
    set_up(database, folder);
    Transaction transaction(database);
    database.execute(kTables);
    database.execute(("PRAGMA application_id=" + std::to_string(store::kApplicationId)).c_str());
    database.execute(("PRAGMA user_version=" + std::to_string(kStudyFormat)).c_str());
    put(database, "name", info.name);
    put(database, "recipe_path", info.recipe_path);
    put(database, "recipe_dir", info.recipe_dir);
    put(database, "recipe", info.recipe_json);
    put(database, "threads", info.threads);
    put(database, "created_ms", info.created_ms);
    transaction.commit();
    auto study = std::unique_ptr<Study>(new Study(folder, std::move(database)));
    study->info_ = info;
    return study;
  });
}

core::Result<std::unique_ptr<Study>> Study::open(const std::string& folder) {
  return core::attempt([&] {
    Database database(study_db_path(folder), Database::Mode::kWrite);
    store::check_format(database, kStudyFormat).value();
    set_up(database, folder);
    auto study = std::unique_ptr<Study>(new Study(folder, std::move(database)));
    study->read_info();
    return study;
  });
}

void Study::read_info() {
  Statement rows = database_.prepare("SELECT key, value FROM info");
  while (rows.step()) {
    const std::string key = rows.text(0);
    if (key == "name") info_.name = rows.text(1);
    if (key == "recipe_path") info_.recipe_path = rows.text(1);
    if (key == "recipe_dir") info_.recipe_dir = rows.text(1);
    if (key == "recipe") info_.recipe_json = rows.text(1);
    if (key == "threads") info_.threads = rows.integer(1);
    if (key == "created_ms") info_.created_ms = rows.integer(1);
  }
}

void Study::set_recipe(const std::string& recipe_json) {
  put(database_, "recipe", recipe_json);
  info_.recipe_json = recipe_json;
}

std::vector<Variant> Study::variants() {
  std::vector<Variant> list;
  Statement rows = database_.prepare("SELECT number, text FROM variants ORDER BY number");
  while (rows.step()) list.push_back({rows.integer(0), {}, rows.text(1)});
  Statement values = database_.prepare("SELECT variant, value FROM coordinates ORDER BY variant, dimension");
  while (values.step()) list.at(static_cast<std::size_t>(values.integer(0))).point.push_back(values.real(1));
  return list;
}

std::vector<Trial> Study::select(const char* condition) {
  std::vector<Trial> list;
  Statement rows = database_.prepare(
      std::string("SELECT number, variant, replicate, state, value, step, run, reason, retries, shrink, started_ms, "
                  "ended_ms FROM trials ") +
      condition);
  while (rows.step()) {
    Trial trial;
    trial.number = rows.integer(0);
    trial.variant = rows.integer(1);
    trial.replicate = rows.integer(2);
    trial.state = state_of(rows.text(3));
    if (!rows.is_null(4)) trial.value = rows.real(4);
    trial.step = rows.integer(5);
    trial.run = rows.text(6);
    trial.reason = rows.text(7);
    trial.retries = rows.integer(8);
    trial.shrink = rows.integer(9) != 0;
    trial.started_ms = rows.integer(10);
    trial.ended_ms = rows.integer(11);
    list.push_back(std::move(trial));
  }
  return list;
}

std::vector<Trial> Study::trials() { return select("ORDER BY number"); }

std::vector<store::SeriesPoint> Study::curve(std::int64_t trial) {
  std::vector<store::SeriesPoint> points;
  Statement rows = database_.prepare("SELECT step, value FROM curve WHERE trial = ? ORDER BY step");
  rows.bind(1, trial);
  while (rows.step()) points.push_back({rows.integer(0), rows.real(1)});
  return points;
}

std::int64_t Study::add_worker(std::int64_t now_ms) {
  Transaction transaction(database_);
  database_.prepare("INSERT INTO workers(since_ms) VALUES(?)").bind(1, now_ms).run();
  Statement last = database_.prepare("SELECT max(id) FROM workers");
  last.step();
  const std::int64_t id = last.integer(0);
  last.reset();
  transaction.commit();
  return id;
}

void Study::take_back(const std::function<bool(std::int64_t)>& is_alive) {
  Transaction transaction(database_);
  std::vector<std::int64_t> owners;
  {
    Statement rows = database_.prepare("SELECT DISTINCT worker FROM trials WHERE state = 'running'");
    while (rows.step()) owners.push_back(rows.integer(0));
  }
  for (const std::int64_t worker : owners) {
    if (is_alive(worker)) continue;
    database_.prepare("UPDATE trials SET state = 'waiting' WHERE state = 'running' AND worker = ?")
        .bind(1, worker)
        .run();
  }
  transaction.commit();
}

void Study::add_variant(const Variant& variant, std::int64_t replicates) {
  database_.prepare("INSERT INTO variants VALUES(?, ?)").bind(1, variant.number).bind(2, variant.text).run();
  for (std::size_t i = 0; i < variant.point.size(); ++i) {
    database_.prepare("INSERT INTO coordinates VALUES(?, ?, ?)")
        .bind(1, variant.number)
        .bind(2, static_cast<std::int64_t>(i))
        .bind(3, variant.point[i])
        .run();
  }
  for (std::int64_t replicate = 0; replicate < replicates; ++replicate) {
    database_.prepare("INSERT INTO trials(number, variant, replicate, state) VALUES(?, ?, ?, 'waiting')")
        .bind(1, variant.number * replicates + replicate)
        .bind(2, variant.number)
        .bind(3, replicate)
        .run();
  }
}

std::optional<Trial> Study::claim(const Demand& demand) {
  Transaction transaction(database_);
  std::vector<Trial> waiting = select("WHERE state = 'waiting' ORDER BY number LIMIT 1");
  if (waiting.empty()) {
    const std::vector<Variant> before = variants();
    if (static_cast<std::int64_t>(before.size()) >= demand.variants_max) return std::nullopt;
    const auto next = demand.propose(before, trials());
    if (!next) return std::nullopt;
    add_variant(*next, demand.replicates);
    waiting = select("WHERE state = 'waiting' ORDER BY number LIMIT 1");
  }
  Trial& trial = waiting.front();
  trial.state = TrialState::kRunning;
  if (trial.started_ms == 0) trial.started_ms = demand.now_ms;
  database_.prepare("UPDATE trials SET state = 'running', worker = ?, started_ms = ? WHERE number = ?")
      .bind(1, demand.worker)
      .bind(2, trial.started_ms)
      .bind(3, trial.number)
      .run();
  transaction.commit();
  return trial;
}

void Study::end(std::int64_t trial, const TrialEnd& end, std::int64_t now_ms) {
  Transaction transaction(database_);
  database_
      .prepare(
          "UPDATE trials SET state = ?, value = ?, step = ?, run = ?, reason = ?, retries = retries + ?, "
          "shrink = max(shrink, ?), ended_ms = ? WHERE number = ?")
      .bind(1, to_text(end.state))
      .bind(2, end.value.value_or(std::numeric_limits<double>::quiet_NaN()))
      .bind(3, end.step)
      .bind(4, end.run)
      .bind(5, end.reason)
      .bind(6, std::int64_t{end.costs_retry})
      .bind(7, std::int64_t{end.shrink})
      .bind(8, end.state == TrialState::kWaiting ? 0 : now_ms)
      .bind(9, trial)
      .run();
  Statement point = database_.prepare("INSERT OR REPLACE INTO curve VALUES(?, ?, ?)");
  for (const store::SeriesPoint& at : end.curve) point.bind(1, trial).bind(2, at.step).bind(3, at.value).run();
  transaction.commit();
}

}  // namespace runner::sweep
