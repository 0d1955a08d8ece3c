#include "runner/sweep/study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/store/schema.h"

namespace runner::sweep {
namespace {

using store::Database;
using store::Statement;
using store::Transaction;

constexpr std::int64_t kStudyFormat = 4;

// A choice's coordinate is its position; a NULL coordinate plays no part in the variant. `waiting` and `running` trials
// belong to their worker as long as that lives. `curve` is the metric as the trial reported it, once it has ended.
// `others` are the values of the objectives after the first, as a JSON list. Transactions that change trials are
// numbered by `changes` in `info`, and `changed` is the last one that changed this row. A variant with a `parent` goes
// on from that one's checkpoint. A worker was at work from `since_ms` to `seen_ms`.
constexpr const char* kTables = R"(
CREATE TABLE info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE workers(id INTEGER PRIMARY KEY, since_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL);
CREATE TABLE variants(number INTEGER PRIMARY KEY, text TEXT NOT NULL, parent INTEGER NOT NULL DEFAULT -1,
                      until INTEGER NOT NULL DEFAULT 0);
CREATE TABLE coordinates(variant INTEGER NOT NULL REFERENCES variants(number), dimension INTEGER NOT NULL, value REAL,
                         PRIMARY KEY(variant, dimension)) WITHOUT ROWID;
CREATE TABLE trials(number INTEGER PRIMARY KEY, variant INTEGER NOT NULL REFERENCES variants(number),
                    replicate INTEGER NOT NULL, state TEXT NOT NULL, value REAL, others TEXT NOT NULL DEFAULT '[]',
                    step INTEGER NOT NULL DEFAULT 0,
                    run TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', retries INTEGER NOT NULL DEFAULT 0,
                    shrink INTEGER NOT NULL DEFAULT 0, promoted INTEGER NOT NULL DEFAULT 0,
                    steps INTEGER NOT NULL DEFAULT 0, samples INTEGER NOT NULL DEFAULT 0,
                    tokens INTEGER NOT NULL DEFAULT 0, worker INTEGER, started_ms INTEGER NOT NULL DEFAULT 0,
                    ended_ms INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL, UNIQUE(variant, replicate));
CREATE INDEX trials_changed ON trials(changed);
CREATE INDEX trials_waiting ON trials(number) WHERE state = 'waiting';
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

std::string text_of(const std::vector<double>& numbers) {
  core::Node list = core::Node::sequence();
  for (const double number : numbers) list.items().push_back(core::Node::floating(number));
  return core::to_json(list, -1);
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  if (text == "[]") return numbers;  // of most sweeps
  const core::Node list = core::parse_json(text).value();
  for (const core::Node& number : list.items()) numbers.push_back(number.as_double());
  return numbers;
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
  database.execute("PRAGMA synchronous=NORMAL");  // a kill takes nothing back, and sync() says when a power cut cannot
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
    put(database, "changes", std::int64_t{0});
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

const std::vector<Variant>& Study::variants() {
  refresh();
  return variants_;
}

const std::vector<Trial>& Study::trials() {
  refresh();
  return trials_;
}

/// Reads what was committed since the last time. Trials first: those that come with a variant are written with it.
void Study::refresh() {
  Statement rows = database_.prepare(
      "SELECT number, variant, replicate, state, value, step, run, reason, retries, shrink, started_ms, ended_ms, "
      "worker, changed, promoted, steps, samples, tokens, others FROM trials WHERE changed > ? "
      "ORDER BY changed, number");
  rows.bind(1, seen_);
  std::int64_t newest = seen_;
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
    trial.worker = rows.integer(12);
    trial.changed = newest = rows.integer(13);
    trial.promoted = rows.integer(14);
    trial.spent = {rows.integer(15), rows.integer(16), rows.integer(17)};
    trial.others = numbers_of(rows.text(18));
    take_in(std::move(trial));
  }
  seen_ = newest;
  const auto known = static_cast<std::int64_t>(variants_.size());
  const std::int64_t last = trials_.empty() ? -1 : trials_.back().variant;
  if (known > last) return;
  Statement texts = database_.prepare(
      "SELECT number, text, parent, until FROM variants WHERE number BETWEEN ? AND ? ORDER BY number");
  texts.bind(1, known).bind(2, last);
  while (texts.step()) variants_.push_back({texts.integer(0), {}, texts.text(1), texts.integer(2), texts.integer(3)});
  Statement values = database_.prepare(
      "SELECT variant, value FROM coordinates WHERE variant BETWEEN ? AND ? ORDER BY variant, dimension");
  values.bind(1, known).bind(2, last);
  while (values.step()) variants_.at(static_cast<std::size_t>(values.integer(0))).point.push_back(values.real(1));
}

void Study::take_in(Trial trial) {
  changes_.push_back(trial.variant);
  const auto list_it = [&trial](std::set<std::int64_t>& list, TrialState state) {
    trial.state == state ? void(list.insert(trial.number)) : void(list.erase(trial.number));
  };
  list_it(waiting_, TrialState::kWaiting);
  list_it(running_, TrialState::kRunning);
  const auto place = static_cast<std::size_t>(trial.number);
  if (place >= trials_.size()) trials_.resize(place + 1);
  trials_[place] = std::move(trial);
}

const std::vector<store::SeriesPoint>& Study::curve(std::int64_t trial) {
  const std::int64_t changed = trials_.at(static_cast<std::size_t>(trial)).changed;
  KeptCurve& kept = curves_[trial];
  if (kept.changed == changed) return kept.points;
  kept = {changed, {}};
  Statement rows = database_.prepare("SELECT step, value FROM curve WHERE trial = ? ORDER BY step");
  rows.bind(1, trial);
  while (rows.step()) kept.points.push_back({rows.integer(0), rows.real(1)});
  return kept.points;
}

std::int64_t Study::add_worker(std::int64_t now_ms) {
  Transaction transaction(database_);
  database_.prepare("INSERT INTO workers(since_ms, seen_ms) VALUES(?, ?)").bind(1, now_ms).bind(2, now_ms).run();
  Statement last = database_.prepare("SELECT max(id) FROM workers");
  last.step();
  const std::int64_t id = last.integer(0);
  last.reset();
  transaction.commit();
  return id;
}

void Study::see_worker(std::int64_t worker, std::int64_t now_ms) {
  database_.prepare("UPDATE workers SET seen_ms = max(seen_ms, ?) WHERE id = ?").bind(1, now_ms).bind(2, worker).run();
}

std::int64_t Study::worked_ms() {
  std::int64_t worked = 0, counted_to = 0;
  Statement rows = database_.prepare("SELECT since_ms, seen_ms FROM workers ORDER BY since_ms");
  while (rows.step()) {
    const std::int64_t from = std::max(rows.integer(0), counted_to), to = rows.integer(1);
    worked += std::max<std::int64_t>(0, to - from);
    counted_to = std::max(counted_to, to);
  }
  return worked;
}

std::string Study::end_reason() {
  Statement rows = database_.prepare("SELECT value FROM info WHERE key = 'end_reason'");
  return rows.step() ? rows.text(0) : "";
}

void Study::set_end_reason(const std::string& reason) { put(database_, "end_reason", reason); }

/// The number of the transaction that asks for it.
std::int64_t Study::next_change() {
  Statement number = database_.prepare("UPDATE info SET value = value + 1 WHERE key = 'changes' RETURNING value");
  number.step();
  return number.integer(0);
}

void Study::take_back(const std::function<bool(std::int64_t)>& is_alive) {
  refresh();
  std::set<std::int64_t> owners;
  for (const std::int64_t trial : running_) owners.insert(trials_[static_cast<std::size_t>(trial)].worker);
  for (const std::int64_t worker : owners) {
    if (is_alive(worker)) continue;
    Transaction transaction(database_);
    database_.prepare("UPDATE trials SET state = 'waiting', changed = ? WHERE state = 'running' AND worker = ?")
        .bind(1, next_change())
        .bind(2, worker)
        .run();
    transaction.commit();
  }
}

/// False where there is one of that number.
bool Study::add_variant(const Variant& variant, std::int64_t replicates, std::int64_t change) {
  Statement added =
      database_.prepare("INSERT INTO variants VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING number");
  added.bind(1, variant.number).bind(2, variant.text).bind(3, variant.parent).bind(4, variant.until);
  if (!added.step()) return false;
  added.reset();
  Statement coordinate = database_.prepare("INSERT INTO coordinates VALUES(?, ?, ?)");
  for (std::size_t i = 0; i < variant.point.size(); ++i)
    coordinate.bind(1, variant.number).bind(2, static_cast<std::int64_t>(i)).bind(3, variant.point[i]).run();
  Statement trial = database_.prepare(
      "INSERT INTO trials(number, variant, replicate, state, worker, changed) VALUES(?, ?, ?, 'waiting', 0, ?)");
  for (std::int64_t replicate = 0; replicate < replicates; ++replicate) {
    trial.bind(1, variant.number * replicates + replicate)
        .bind(2, variant.number)
        .bind(3, replicate)
        .bind(4, change)
        .run();
  }
  return true;
}

/// Its run is one to go on with again, and waits for it. False where somebody else has promoted it.
bool Study::promote(std::int64_t trial, std::int64_t change) {
  Statement promoted = database_.prepare(
      "UPDATE trials SET state = 'waiting', promoted = step, run = '', ended_ms = 0, changed = ? "
      "WHERE number = ? AND state = 'pruned' RETURNING number");
  promoted.bind(1, change).bind(2, trial);
  return promoted.step();
}

std::optional<Trial> Study::claim(const Demand& demand) {
  for (;;) {  // once more for each trial that another worker takes meanwhile
    refresh();
    std::optional<Variant> next;
    std::optional<std::int64_t> promoted;
    if (waiting_.empty() && demand.promote) promoted = demand.promote();
    if (waiting_.empty() && !promoted) {
      if (static_cast<std::int64_t>(variants_.size()) >= demand.variants_max) return std::nullopt;
      // Before the transaction: while that is open no other worker writes.
      next = demand.propose(variants_, trials_);
      if (!next) return std::nullopt;
    }
    Transaction transaction(database_);
    const std::int64_t change = next_change();
    if (promoted && !promote(*promoted, change)) continue;
    if (next && !add_variant(*next, demand.replicates, change)) continue;
    Statement claimed = database_.prepare(
        "UPDATE trials SET state = 'running', worker = ?, changed = ?, "
        "started_ms = CASE started_ms WHEN 0 THEN ? ELSE started_ms END WHERE number = "
        "(SELECT number FROM trials WHERE state = 'waiting' ORDER BY number LIMIT 1) RETURNING number");
    claimed.bind(1, demand.worker).bind(2, change).bind(3, demand.now_ms);
    if (!claimed.step()) continue;
    const std::int64_t number = claimed.integer(0);
    claimed.reset();
    transaction.commit();
    refresh();
    return trials_[static_cast<std::size_t>(number)];
  }
}

void Study::end(std::int64_t trial, const TrialEnd& end, std::int64_t now_ms) {
  Transaction transaction(database_);
  database_
      .prepare(
          "UPDATE trials SET state = ?, value = ?, step = ?, run = ?, reason = ?, retries = retries + ?, "
          "shrink = max(shrink, ?), ended_ms = ?, changed = ?, steps = ?, samples = ?, tokens = ?, "
          "others = ? WHERE number = ?")
      .bind(1, to_text(end.state))
      .bind(2, end.value.value_or(std::numeric_limits<double>::quiet_NaN()))
      .bind(3, end.step)
      .bind(4, end.run)
      .bind(5, end.reason)
      .bind(6, std::int64_t{end.costs_retry})
      .bind(7, std::int64_t{end.shrink})
      .bind(8, end.state == TrialState::kWaiting ? 0 : now_ms)
      .bind(9, next_change())
      .bind(10, end.spent.steps)
      .bind(11, end.spent.samples)
      .bind(12, end.spent.tokens)
      .bind(13, text_of(end.others))
      .bind(14, trial)
      .run();
  database_
      .prepare("UPDATE workers SET seen_ms = max(seen_ms, ?) WHERE id = (SELECT worker FROM trials WHERE number = ?)")
      .bind(1, now_ms)
      .bind(2, trial)
      .run();
  Statement point = database_.prepare("INSERT OR REPLACE INTO curve VALUES(?, ?, ?)");
  for (const store::SeriesPoint& at : end.curve) point.bind(1, trial).bind(2, at.step).bind(3, at.value).run();
  transaction.commit();
}

void Study::sync() {
  database_.execute("PRAGMA synchronous=FULL");
  Transaction transaction(database_);
  put(database_, "synced", next_change());  // one that writes nothing syncs nothing
  transaction.commit();
  database_.execute("PRAGMA synchronous=NORMAL");
}

}  // namespace runner::sweep
