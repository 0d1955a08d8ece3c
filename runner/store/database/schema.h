#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runner/core/result.h"
#include "runner/store/database/sqlite.h"

namespace runner::store {

/// The formats of a run's files. `PRAGMA user_version` holds the number, `application_id` marks roux's files. A file
/// with a higher number is refused by name; a lower one is migrated (there is none yet).
inline constexpr std::int64_t kRunFormat = 1;
inline constexpr std::int64_t kAnnotationsFormat = 1;
inline constexpr std::int64_t kApplicationId = 0x726F7578;  // "roux"

inline constexpr const char* kRunTableNames[] = {"info", "branches", "series", "metrics", "events", "artefacts"};

/// Writes the tables of run.db into an empty file; within the caller's transaction.
void create_run_schema(Database& database);
/// The same for annotations.db: annotations of users and trackers.
void create_annotations_schema(Database& database);

/// `format` is kRunFormat or kAnnotationsFormat. Failure names the file, its format and what to do.
core::Result<void> check_format(const Database& database, std::int64_t format);

/// A file without a first transaction is empty and has no format.
bool is_empty(const Database& database);

/// Adds or replaces an entry of the table `info`, which both have.
void put_info(const Database& database, std::string_view key, std::string_view value);
void put_info(const Database& database, std::string_view key, std::int64_t value);

std::string run_db_path(const std::string& run_dir);
std::string annotations_db_path(const std::string& run_dir);

}  // namespace runner::store
