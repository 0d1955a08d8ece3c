#include "runner/store/run_index.h"

#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/store/database/schema.h"
#include "runner/store/database/sqlite.h"

namespace runner::store {
namespace {

// Another number than this, lower or higher, means: throw the rows away.
constexpr std::int64_t kIndexFormat = 5;

constexpr const char* kTable = R"(
DROP TABLE IF EXISTS runs;
CREATE TABLE runs(folder TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL,
                  status INTEGER NOT NULL, reason TEXT NOT NULL, smoke INTEGER NOT NULL, created_ms INTEGER NOT NULL,
                  ended_ms INTEGER NOT NULL, branch INTEGER NOT NULL, step INTEGER NOT NULL, recipe_hash TEXT NOT NULL,
                  metrics TEXT NOT NULL, summary TEXT NOT NULL, label TEXT NOT NULL, tags TEXT NOT NULL,
                  notes TEXT NOT NULL, archived INTEGER NOT NULL);
DROP TABLE IF EXISTS recipes;
CREATE TABLE recipes(folder TEXT PRIMARY KEY, leaves TEXT NOT NULL);
)";

/// `VALUE LENGTH:NAME` repeated: much faster to parse than JSON for thousands of runs, and a name may contain any
/// character.
std::string pack(const std::map<std::string, double>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text.append(digits, end).append(" ").append(std::to_string(name.size())).append(":").append(name);
  }
  return text;
}

std::map<std::string, double> unpack_metrics(std::string_view text) {
  std::map<std::string, double> metrics;
  while (!text.empty()) {
    double value = 0;
    std::size_t length = 0;
    const char* const last = text.data() + text.size();
    const char* at = std::from_chars(text.data(), last, value).ptr;
    if (at != last) at = std::from_chars(at + 1, last, length).ptr;
    if (at == last || length > static_cast<std::size_t>(last - at - 1)) return metrics;
    metrics.emplace_hint(metrics.end(), std::string_view(at + 1, length), value);
    text = std::string_view(at + 1 + length, last);
  }
  return metrics;
}

/// The same for tags and notes: `LENGTH:TEXT`.
std::string pack(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += std::to_string(word.size()) + ":" + word;
  return text;
}

std::vector<std::string> unpack_words(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::size_t length = 0;
    const char* const last = text.data() + text.size();
    const char* at = std::from_chars(text.data(), last, length).ptr;
    if (at == last || length > static_cast<std::size_t>(last - at - 1)) return words;
    words.emplace_back(at + 1, length);
    text = std::string_view(at + 1 + length, last);
  }
  return words;
}

bool is_current(const Database& database) {
  return database.pragma("application_id") == kApplicationId && database.pragma("user_version") == kIndexFormat;
}

void remove_damaged(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) std::filesystem::remove(path + suffix, ignored);
}

}  // namespace

std::unordered_map<std::string, RunIndex::Row> RunIndex::load() const {
  std::unordered_map<std::string, Row> rows;
  try {
    const Database database(path(), Database::Mode::kRead);
    if (!is_current(database)) return {};
    Statement all = database.prepare(
        "SELECT folder, fingerprint, id, name, status, reason, smoke, created_ms, ended_ms, branch, step, recipe_hash, "
        "metrics, summary, label, tags, notes, archived FROM runs");
    while (all.step()) {
      Row row;
      row.fingerprint = all.text(1);
      RunSummary& run = row.run;
      run.run_dir = output_dir_ + "/" + all.text(0);
      run.id = all.text(2);
      run.name = all.text(3);
      run.status = static_cast<RunStatus>(all.integer(4));
      run.reason = all.text(5);
      run.smoke = all.integer(6) != 0;
      run.created_ms = all.integer(7);
      run.ended_ms = all.integer(8);
      run.branch = all.integer(9);
      run.step = all.integer(10);
      run.recipe_hash = all.text(11);
      run.metrics = unpack_metrics(all.text(12));
      if (const std::string summary = all.text(13); !summary.empty()) {
        run.summary = core::parse_json(summary).value_or(core::Node::null());
      }
      run.label = all.text(14);
      run.tags = unpack_words(all.text(15));
      run.notes = unpack_words(all.text(16));
      run.archived = all.integer(17) != 0;
      rows.emplace(all.text(0), std::move(row));
    }
  } catch (const SqliteError& error) {
    if (!error.is_corrupt()) return {};
    core::log_debug(std::string(error.what()) + "; the index is rebuilt");
    remove_damaged(path());
    return {};
  }
  return rows;
}

void RunIndex::each_recipe(const std::function<void(std::string_view, std::string_view)>& give) const {
  try {
    const Database database(path(), Database::Mode::kRead);
    if (!is_current(database)) return;
    Statement all = database.prepare("SELECT folder, leaves FROM recipes");
    while (all.step()) give(all.view(0), all.view(1));
  } catch (const SqliteError& error) {
    core::log_debug(error.what());  // load() has said what there is to do
  }
}

void RunIndex::remove() const { remove_damaged(path()); }

void RunIndex::store(const std::vector<std::pair<std::string, Row>>& changed,
                     const std::vector<std::string>& gone) const {
  if (changed.empty() && gone.empty()) return;
  try {
    Database database(path(), Database::Mode::kCreate);
    Transaction transaction(database);
    if (!is_current(database)) {
      database.execute(kTable);
      database.execute(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
      database.execute(("PRAGMA user_version=" + std::to_string(kIndexFormat)).c_str());
    }
    Statement insert =
        database.prepare("INSERT OR REPLACE INTO runs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    Statement insert_recipe = database.prepare("INSERT OR REPLACE INTO recipes VALUES(?, ?)");
    for (const auto& [folder, row] : changed) {
      insert_recipe.bind(1, folder).bind(2, row.leaves).run();
      const RunSummary& run = row.run;
      insert.bind(1, folder)
          .bind(2, row.fingerprint)
          .bind(3, run.id)
          .bind(4, run.name)
          .bind(5, static_cast<std::int64_t>(run.status))
          .bind(6, run.reason)
          .bind(7, std::int64_t{run.smoke})
          .bind(8, run.created_ms)
          .bind(9, run.ended_ms)
          .bind(10, run.branch)
          .bind(11, run.step)
          .bind(12, run.recipe_hash)
          .bind(13, pack(run.metrics))
          .bind(14, run.summary.is_null() ? std::string() : core::to_json(run.summary, -1))
          .bind(15, run.label)
          .bind(16, pack(run.tags))
          .bind(17, pack(run.notes))
          .bind(18, std::int64_t{run.archived})
          .run();
    }
    for (const char* table : {"runs", "recipes"}) {
      Statement erase = database.prepare(std::string("DELETE FROM ") + table + " WHERE folder = ?");
      for (const std::string& folder : gone) erase.bind(1, folder).run();
    }
    transaction.commit();
  } catch (const SqliteError& error) {
    core::log_debug(std::string(error.what()) + "; the list was read without an index");
    if (error.is_corrupt()) remove_damaged(path());
  }
}

}  // namespace runner::store
