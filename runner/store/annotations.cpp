#include "runner/store/annotations.h"

#include "runner/core/log.h"
#include "runner/store/database/schema.h"

namespace runner::store {
namespace {

// Users and trackers write here, and neither retries.
constexpr int kBusyTimeoutMs = 30'000;

std::string info(const Database& database, const char* key) {
  Statement row = database.prepare("SELECT value FROM info WHERE key = ?");
  return row.bind(1, std::string_view(key)).step() ? row.text(0) : "";
}

/// "" removes the entry.
void set_info(Database& database, const char* key, const std::string& value) {
  if (value.empty()) {
    database.prepare("DELETE FROM info WHERE key = ?").bind(1, std::string_view(key)).run();
  } else {
    put_info(database, key, value);
  }
}

}  // namespace

Annotations read_annotations(const std::string& run_dir) {
  Annotations annotations;
  try {
    const Database database(annotations_db_path(run_dir), Database::Mode::kRead);
    if (is_empty(database)) return annotations;
    check_format(database, kAnnotationsFormat).value();
    annotations.label = info(database, "name");
    annotations.archived = !info(database, "archived").empty();
    Statement tags = database.prepare("SELECT tag FROM tags ORDER BY tag");
    while (tags.step()) annotations.tags.push_back(tags.text(0));
    Statement notes = database.prepare("SELECT time_ms, text FROM notes ORDER BY row");
    while (notes.step()) annotations.notes.emplace_back(notes.integer(0), notes.text(1));
  } catch (const core::RunError& error) {
    core::log_debug(error.what());
    return {};
  }
  return annotations;
}

Database open_annotations(const std::string& run_dir) {
  Database database(annotations_db_path(run_dir), Database::Mode::kCreate);
  database.set_busy_timeout(kBusyTimeoutMs);
  Transaction transaction(database);
  if (is_empty(database)) create_annotations_schema(database);
  check_format(database, kAnnotationsFormat).value();
  transaction.commit();
  return database;
}

void set_label(const std::string& run_dir, const std::string& label) {
  Database database = open_annotations(run_dir);
  set_info(database, "name", label);
}

void add_tags(const std::string& run_dir, const std::vector<std::string>& tags) {
  Database database = open_annotations(run_dir);
  Transaction transaction(database);
  for (const std::string& tag : tags) database.prepare("INSERT OR IGNORE INTO tags VALUES(?)").bind(1, tag).run();
  transaction.commit();
}

std::string remove_tags(const std::string& run_dir, const std::vector<std::string>& tags) {
  Database database = open_annotations(run_dir);
  Transaction transaction(database);
  for (const std::string& tag : tags) {
    Statement there = database.prepare("SELECT 1 FROM tags WHERE tag = ?");
    if (!there.bind(1, tag).step()) return tag;
    there.reset();
    database.prepare("DELETE FROM tags WHERE tag = ?").bind(1, tag).run();
  }
  transaction.commit();
  return "";
}

void add_note(const std::string& run_dir, std::int64_t time_ms, const std::string& text) {
  const Database database = open_annotations(run_dir);
  database.prepare("INSERT INTO notes(time_ms, text) VALUES(?, ?)").bind(1, time_ms).bind(2, text).run();
}

void set_archived(const std::string& run_dir, bool archived) {
  Database database = open_annotations(run_dir);
  set_info(database, "archived", archived ? "1" : "");
}

}  // namespace runner::store
