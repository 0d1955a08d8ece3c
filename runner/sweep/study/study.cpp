#include "runner/sweep/study/study.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/recipe/renamed_keys.h"
#include "runner/store/lease.h"
#include "runner/sweep/study/postgres_store.h"
#include "runner/sweep/study/sqlite_store.h"

namespace runner::sweep {
namespace {

constexpr std::int64_t kStudyFormat = 6;
constexpr std::int64_t kPointerBytesMax = 64 << 10;
// Heartbeat interval with PostgreSQL: several in the shortest lease that `worker_timeout` allows, so that a resume may
// shorten it while others work.
constexpr std::int64_t kBeatMs = 2000;

// A choice's coordinate is its position; a NULL coordinate plays no part in the variant. `waiting` and `running` trials
// belong to their worker as long as that lives. `curve` is the metric as the trial reported it, once it has ended.
// `others` are the values of the objectives after the first, as a JSON list. A variant with a `parent` resumes from
// that one's checkpoint. A worker was at work from `since_ms` to `seen_ms`. Transactions that change trials are
// numbered by `changes`; `changed` is the last one that changed the row. `claims` counts the workers that the trial was
// given to: a worker taken for dead cannot end it instead of the next one. `steps`, `samples` and `tokens` are what all
// runs of the trial have trained; of them `lost_...` are of runs after which it restarted from scratch.
constexpr const char* kTables[] = {
    "CREATE TABLE info(key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE changes(number BIGINT NOT NULL)",
    "CREATE TABLE workers(id BIGINT PRIMARY KEY, host TEXT NOT NULL, pid BIGINT NOT NULL, since_ms BIGINT NOT NULL, "
    "seen_ms BIGINT NOT NULL, gone BIGINT NOT NULL DEFAULT 0)",
    "CREATE TABLE variants(number BIGINT PRIMARY KEY, text TEXT NOT NULL, parent BIGINT NOT NULL, "
    "until BIGINT NOT NULL)",
    "CREATE TABLE coordinates(variant BIGINT NOT NULL REFERENCES variants(number), dimension BIGINT NOT NULL, "
    "value DOUBLE PRECISION, PRIMARY KEY(variant, dimension))",
    "CREATE TABLE trials(number BIGINT PRIMARY KEY, variant BIGINT NOT NULL REFERENCES variants(number), "
    "replicate BIGINT NOT NULL, state TEXT NOT NULL, value DOUBLE PRECISION, others TEXT NOT NULL DEFAULT '[]', "
    "step BIGINT NOT NULL DEFAULT 0, "
    "run TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', retries BIGINT NOT NULL DEFAULT 0, "
    "shrink BIGINT NOT NULL DEFAULT 0, promoted BIGINT NOT NULL DEFAULT 0, steps BIGINT NOT NULL DEFAULT 0, "
    "samples BIGINT NOT NULL DEFAULT 0, tokens BIGINT NOT NULL DEFAULT 0, "
    "lost_steps BIGINT NOT NULL DEFAULT 0, lost_samples BIGINT NOT NULL DEFAULT 0, lost_tokens BIGINT NOT NULL "
    "DEFAULT 0, worker BIGINT NOT NULL DEFAULT 0, claims BIGINT NOT NULL DEFAULT 0, "
    "started_ms BIGINT NOT NULL DEFAULT 0, ended_ms BIGINT NOT NULL DEFAULT 0, changed BIGINT NOT NULL, "
    "UNIQUE(variant, replicate))",
    "CREATE INDEX trials_changed ON trials(changed)",
    "CREATE INDEX trials_waiting ON trials(number) WHERE state = 'waiting'",
    "CREATE TABLE curve(trial BIGINT NOT NULL REFERENCES trials(number), step BIGINT NOT NULL, "
    "value DOUBLE PRECISION, PRIMARY KEY(trial, step))",
};

constexpr TrialState kStates[] = {TrialState::kWaiting, TrialState::kRunning, TrialState::kComplete,
                                  TrialState::kPruned, TrialState::kFailed};

TrialState state_of(const std::string& text) {
  for (const TrialState state : kStates) {
    if (text == to_text(state)) return state;
  }
  throw core::RunError("the study has a trial in the state \"" + text + "\", which this version of roux does not know");
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

std::string pointer_path(const std::string& folder) { return folder + "/store.json"; }

void put(StudyStore& store, const std::string& key, const std::string& value) {
  store.run("INSERT INTO info VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", {key, value});
}

void set_up(StudyStore& store, const StudyInfo& info) {
  for (const char* table : kTables) store.run(table);
  store.run("INSERT INTO changes VALUES(0)");
  put(store, "name", info.name);
  put(store, "recipe_path", info.recipe_path);
  put(store, "recipe_dir", info.recipe_dir);
  put(store, "recipe", info.recipe_json);
  put(store, "threads", std::to_string(info.threads));
  put(store, "created_ms", std::to_string(info.created_ms));
  put(store, "lease_ms", std::to_string(info.lease_ms));
  put(store, "unset", info.unset_json);
  if (info.stand_in) put(store, "stand_in", "1");
}

}  // namespace

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

bool is_study(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(study_db_path(folder), ignored) ||
         std::filesystem::exists(pointer_path(folder), ignored);
}

core::Result<void> link_study(const std::string& folder, const std::string& store, const std::string& name) {
  core::Node pointer = core::Node::mapping();
  pointer.set("store", core::Node::string(store));
  pointer.set("sweep", core::Node::string(name));
  if (auto made = core::make_folders(folder); !made) return made;
  return core::write_file_atomic(pointer_path(folder), core::to_json(pointer) + "\n");
}

Study::Study(std::string folder, std::unique_ptr<StudyStore> store)
    : folder_(std::move(folder)), store_(std::move(store)) {}

core::Result<std::unique_ptr<Study>> Study::create(const std::string& folder, const StudyInfo& info,
                                                   const core::Clock& clock) {
  return core::attempt([&] {
    const auto tables = [&info](StudyStore& store) { set_up(store, info); };
    std::unique_ptr<StudyStore> store;
    if (info.store.empty()) {
      store = SqliteStore::create(folder, kStudyFormat, clock, tables);
    } else {
      store = PostgresStore::create({info.store, info.name, info.lease_ms}, kStudyFormat, tables);
      link_study(folder, info.store, info.name).value();
    }
    std::unique_ptr<Study> study(new Study(folder, std::move(store)));
    study->info_ = info;
    return study;
  });
}

core::Result<std::unique_ptr<Study>> Study::open(const std::string& folder, const core::Clock& clock) {
  return core::attempt([&] {
    std::unique_ptr<StudyStore> store;
    std::string address;
    std::error_code ignored;
    if (std::filesystem::exists(pointer_path(folder), ignored)) {
      const core::Node pointer =
          core::parse_json(core::read_file(pointer_path(folder), kPointerBytesMax).value()).value();
      address = pointer.find("store")->as_string();
      store = PostgresStore::open({address, pointer.find("sweep")->as_string(), store::kLeaseMs}, kStudyFormat);
    } else {
      store = SqliteStore::open(folder, kStudyFormat, clock);
    }
    std::unique_ptr<Study> study(new Study(folder, std::move(store)));
    study->info_.store = address;
    study->read_info();
    return study;
  });
}

void Study::read_info() {
  for (const Row& row : store_->run("SELECT key, value FROM info")) {
    const std::string& key = row.text(0);
    const std::string& value = row.text(1);
    if (key == "name") info_.name = value;
    if (key == "recipe_path") info_.recipe_path = value;
    if (key == "recipe_dir") info_.recipe_dir = value;
    if (key == "recipe") info_.recipe_json = value;
    if (key == "threads") info_.threads = std::stoll(value);
    if (key == "created_ms") info_.created_ms = std::stoll(value);
    if (key == "unset") info_.unset_json = value;
    if (key == "stand_in") info_.stand_in = value == "1";
  }
  read_lease();
}

void Study::read_lease() {
  const Rows rows = store_->run("SELECT value FROM info WHERE key = 'lease_ms'");
  info_.lease_ms = rows.empty() ? 0 : std::stoll(rows.front().text(0));
  if (info_.lease_ms > 0) store_->set_lease(info_.lease_ms);
}

void Study::set_recipe(const std::string& recipe_json, std::int64_t lease_ms) {
  set_info("recipe", recipe_json);
  set_info("lease_ms", std::to_string(lease_ms));
  info_.recipe_json = recipe_json;
  info_.lease_ms = lease_ms;
  store_->set_lease(lease_ms);
}

void Study::set_info(const std::string& key, const std::string& value) {
  write([&] {
    number_change();
    put(*store_, key, value);
    return true;
  });
}

/// Retries until it is known to be written, or not wanted: `work` is idempotent.
void Study::write(const std::function<bool()>& work) {
  while (store_->transact(work) == StudyStore::Written::kUnknown) {
  }
}

/// The number of this transaction. Others wait for its end before they get theirs.
std::int64_t Study::number_change() {
  return store_->run("UPDATE changes SET number = number + 1 RETURNING number").front().integer(0);
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
  const Rows rows = store_->run(
      "SELECT number, variant, replicate, state, value, step, run, reason, retries, shrink, started_ms, ended_ms, "
      "worker, claims, changed, promoted, steps, samples, tokens, others FROM trials WHERE changed > ? ORDER BY "
      "changed, number",
      {seen_});
  for (const Row& row : rows) {
    Trial trial;
    trial.number = row.integer(0);
    trial.variant = row.integer(1);
    trial.replicate = row.integer(2);
    trial.state = state_of(row.text(3));
    if (!row.is_null(4)) trial.value = row.real(4);
    trial.step = row.integer(5);
    trial.run = row.text(6);
    trial.reason = row.text(7);
    trial.retries = row.integer(8);
    trial.shrink = row.integer(9) != 0;
    trial.started_ms = row.integer(10);
    trial.ended_ms = row.integer(11);
    trial.worker = row.integer(12);
    trial.claims = row.integer(13);
    trial.changed = row.integer(14);
    trial.promoted = row.integer(15);
    trial.spent = {row.integer(16), row.integer(17), row.integer(18)};
    trial.others = numbers_of(row.text(19));
    add(std::move(trial));
  }
  const auto known = static_cast<std::int64_t>(variants_.size());
  const std::int64_t last = trials_.empty() ? -1 : trials_.back().variant;
  if (known > last) return;
  for (const Row& row : store_->run("SELECT number, text, parent, until FROM variants "
                                    "WHERE number BETWEEN ? AND ? ORDER BY number",
                                    {known, last})) {
    variants_.push_back({row.integer(0), {}, recipe::renamed_text(row.text(1)), row.integer(2), row.integer(3)});
  }
  for (const Row& row : store_->run("SELECT variant, value FROM coordinates WHERE variant BETWEEN ? AND ? "
                                    "ORDER BY variant, dimension",
                                    {known, last})) {
    variants_.at(static_cast<std::size_t>(row.integer(0))).point.push_back(row.real(1));
  }
}

void Study::add(Trial trial) {
  seen_ = trial.changed;
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

std::vector<store::SeriesPoint> Study::curve(std::int64_t trial) {
  std::vector<store::SeriesPoint> points;
  for (const Row& row : store_->run("SELECT step, value FROM curve WHERE trial = ? ORDER BY step", {trial}))
    points.push_back({row.integer(0), row.real(1)});
  return points;
}

std::int64_t Study::add_worker(std::int64_t now_ms) {
  write([&] {
    number_change();
    worker_ = store_->run("SELECT coalesce(max(id), 0) + 1 FROM workers").front().integer(0);
    store_->run("INSERT INTO workers(id, host, pid, since_ms, seen_ms) VALUES(?, ?, ?, ?, ?)",
                {worker_, core::host_name(), std::int64_t{getpid()}, now_ms, now_ms});
    return true;
  });
  store_->register_worker(worker_);
  return worker_;
}

void Study::mark_worker_active(std::int64_t worker, std::int64_t now_ms) {
  write([&] {
    store_->run("UPDATE workers SET seen_ms = ? WHERE id = ? AND seen_ms < ?", {now_ms, worker, now_ms});
    return true;
  });
}

std::string Study::host_of(std::int64_t worker) {
  const Rows rows = store_->run("SELECT host FROM workers WHERE id = ?", {worker});
  return rows.empty() ? "another machine" : rows.front().text(0);
}

std::int64_t Study::worked_ms(std::int64_t worker, std::int64_t now_ms) {
  std::int64_t worked = 0, counted_to = 0;
  for (const Row& row : store_->run("SELECT since_ms, seen_ms, id FROM workers ORDER BY since_ms")) {
    const std::int64_t from = std::max(row.integer(0), counted_to);
    const std::int64_t to = row.integer(2) == worker ? std::max(row.integer(1), now_ms) : row.integer(1);
    worked += std::max<std::int64_t>(0, to - from);
    counted_to = std::max(counted_to, to);
  }
  return worked;
}

std::string Study::end_reason() {
  const Rows rows = store_->run("SELECT value FROM info WHERE key = 'end_reason'");
  return rows.empty() ? "" : rows.front().text(0);
}

void Study::set_end_reason(const std::string& reason) { set_info("end_reason", reason); }

std::int64_t Study::heartbeat_ms() const { return info_.store.empty() ? store::kHeartbeatMs : kBeatMs; }

bool Study::heartbeat() {
  if (!info_.store.empty()) read_lease();
  return store_->heartbeat(worker_);
}

std::vector<Trial> Study::trials_snapshot() {
  std::vector<Trial> list = trials();
  std::map<std::int64_t, bool> alive;
  for (Trial& trial : list) {
    if (trial.state != TrialState::kRunning) continue;
    const auto [known, is_new] = alive.try_emplace(trial.worker, false);
    if (is_new) known->second = store_->is_alive(trial.worker);
    if (!known->second) trial.state = TrialState::kWaiting;
  }
  return list;
}

void Study::requeue_trials() {
  refresh();
  std::set<std::int64_t> owners;
  for (const std::int64_t trial : running_) owners.insert(trials_[static_cast<std::size_t>(trial)].worker);
  owners.erase(worker_);
  for (const std::int64_t owner : owners) {
    if (store_->is_alive(owner)) continue;
    write([&] {
      const std::int64_t change = number_change();
      if (store_->is_alive(owner)) return false;
      store_->run("UPDATE workers SET gone = 1 WHERE id = ?", {owner});
      store_->run(
          "UPDATE trials SET state = 'waiting', claims = claims + 1, changed = ? WHERE state = 'running' AND worker = "
          "?",
          {change, owner});
      return true;
    });
  }
}

std::set<std::int64_t> Study::running() {
  refresh();
  return running_;
}

bool Study::has_workers() {
  const Rows rows = store_->run("SELECT id FROM workers WHERE gone = 0");
  return std::any_of(rows.begin(), rows.end(), [this](const Row& row) { return store_->is_alive(row.integer(0)); });
}

/// False where there is one of that number.
bool Study::add_variant(const Variant& variant, std::int64_t replicates, std::int64_t change) {
  if (store_
          ->run("INSERT INTO variants VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING number",
                {variant.number, variant.text, variant.parent, variant.until})
          .empty()) {
    return false;
  }
  for (std::size_t i = 0; i < variant.point.size(); ++i) {
    store_->run("INSERT INTO coordinates VALUES(?, ?, ?)",
                {variant.number, static_cast<std::int64_t>(i), variant.point[i]});
  }
  for (std::int64_t replicate = 0; replicate < replicates; ++replicate) {
    store_->run("INSERT INTO trials(number, variant, replicate, state, changed) VALUES(?, ?, ?, 'waiting', ?)",
                {variant.number * replicates + replicate, variant.number, replicate, change});
  }
  return true;
}

/// Its run is resumable again, and waits for that. False when another worker has promoted it.
bool Study::promote(std::int64_t trial, std::int64_t change) {
  return !store_
              ->run(
                  "UPDATE trials SET state = 'waiting', promoted = step, run = '', ended_ms = 0, changed = ? "
                  "WHERE number = ? AND state = 'pruned' RETURNING number",
                  {change, trial})
              .empty();
}

/// A trial that was given to this worker without its knowing: the connection was lost before the answer came.
std::optional<std::int64_t> Study::forgotten() const {
  for (const std::int64_t number : running_) {
    const Trial& trial = trials_[static_cast<std::size_t>(number)];
    if (trial.worker == worker_ && !held_.contains(number)) return number;
  }
  return std::nullopt;
}

std::optional<Trial> Study::assign(std::int64_t trial) {
  refresh();
  const Trial& given = trials_[static_cast<std::size_t>(trial)];
  if (given.state != TrialState::kRunning || given.worker != worker_) return std::nullopt;
  held_[trial] = given.claims;
  return given;
}

std::optional<Trial> Study::claim(const Demand& demand) {
  for (;;) {  // once more for each trial that another worker takes meanwhile, and each time the connection is lost
    refresh();
    if (const auto mine = forgotten()) {
      if (auto given = assign(*mine)) return given;
      continue;
    }
    std::optional<Variant> next;
    std::optional<std::int64_t> promoted;
    if (waiting_.empty() && demand.promote) promoted = demand.promote();
    if (waiting_.empty() && !promoted) {
      if (static_cast<std::int64_t>(variants_.size()) >= demand.variants_max) return std::nullopt;
      // Before the transaction: while that is open no other worker writes.
      next = demand.propose(variants_, trials_);
      if (!next) return std::nullopt;
    }
    std::int64_t number = 0;
    const auto written = store_->transact([&] {
      const std::int64_t change = number_change();
      if (promoted && !promote(*promoted, change)) return false;
      if (next && !add_variant(*next, demand.replicates, change)) return false;
      const Rows claimed = store_->run(
          "UPDATE trials SET state = 'running', worker = ?, claims = claims + 1, changed = ?, "
          "started_ms = CASE started_ms WHEN 0 THEN ? ELSE started_ms END WHERE number = "
          "(SELECT number FROM trials WHERE state = 'waiting' ORDER BY number LIMIT 1) RETURNING number",
          {worker_, change, demand.now_ms});
      if (claimed.empty()) return false;
      number = claimed.front().integer(0);
      return true;
    });
    if (written != StudyStore::Written::kYes) continue;
    if (auto given = assign(number)) return given;
  }
}

bool Study::end(std::int64_t number, const TrialEnd& end, std::int64_t now_ms) {
  const Trial& before = trials_.at(static_cast<std::size_t>(number));
  const auto held = held_.find(number);
  const std::int64_t claims = held != held_.end() ? held->second : before.claims;
  const Value value = end.value ? Value(*end.value) : Value();
  bool is_ours = false;
  write([&] {
    const std::int64_t change = number_change();
    const Row now = store_
                        ->run(
                            "SELECT claims, state, retries, shrink, steps, samples, tokens, lost_steps, "
                            "lost_samples, lost_tokens FROM trials WHERE number = ?",
                            {number})
                        .front();
    is_ours = now.integer(0) == claims;
    if (!is_ours || state_of(now.text(1)) != TrialState::kRunning) return false;  // or it was written before
    const Spent lost = {now.integer(7), now.integer(8), now.integer(9)};
    const Spent spent = end.spent ? lost + *end.spent : Spent{now.integer(4), now.integer(5), now.integer(6)};
    const Spent& lost_now = end.starts_new_run ? spent : lost;
    store_->run(
        "UPDATE trials SET state = ?, value = ?, step = ?, run = ?, reason = ?, retries = ?, shrink = ?, ended_ms = ?, "
        "changed = ?, steps = ?, samples = ?, tokens = ?, lost_steps = ?, lost_samples = ?, lost_tokens = ?, "
        "others = ? WHERE number = ?",
        {std::string(to_text(end.state)), value, end.step, end.run, end.reason,
         now.integer(2) + std::int64_t{end.costs_retry}, std::max(now.integer(3), std::int64_t{end.shrink}),
         end.state == TrialState::kWaiting ? 0 : now_ms, change, spent.steps, spent.samples, spent.tokens,
         lost_now.steps, lost_now.samples, lost_now.tokens, text_of(end.others), number});
    store_->run(
        "UPDATE workers SET seen_ms = ? WHERE id = (SELECT worker FROM trials WHERE number = ?) AND seen_ms < ?",
        {now_ms, number, now_ms});
    // Of an earlier life that went further nothing stays.
    if (end.state != TrialState::kWaiting) store_->run("DELETE FROM curve WHERE trial = ?", {number});
    for (const store::SeriesPoint& at : end.curve) {
      store_->run("INSERT INTO curve VALUES(?, ?, ?) ON CONFLICT(trial, step) DO UPDATE SET value = excluded.value",
                  {number, at.step, at.value});
    }
    return true;
  });
  held_.erase(number);
  return is_ours;
}

}  // namespace runner::sweep
