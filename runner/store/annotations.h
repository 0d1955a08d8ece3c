#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/store/database/sqlite.h"

namespace runner::store {

/// User annotations of a run.
struct Annotations {
  std::string label;  ///< the name given later
  std::vector<std::string> tags;
  std::vector<std::pair<std::int64_t, std::string>> notes;  ///< time in ms, text
  bool archived = false;                                    ///< lists leave the run out
};

/// Empty if there are none, or if they cannot be read: the run itself counts.
Annotations read_annotations(const std::string& run_dir);

/// Opens annotations.db for writing, creating it if missing; possible while the run is active. Errors: SqliteError;
/// RunError when it is of a newer format.
Database open_annotations(const std::string& run_dir);

/// Each is on disk when it returns. Errors as open_annotations().
void set_label(const std::string& run_dir, const std::string& label);  ///< "" removes the given name
void add_tags(const std::string& run_dir, const std::vector<std::string>& tags);
/// Removes all tags, or none if the run lacks one: then returns the first such tag, else "".
std::string remove_tags(const std::string& run_dir, const std::vector<std::string>& tags);
void add_note(const std::string& run_dir, std::int64_t time_ms, const std::string& text);
void set_archived(const std::string& run_dir, bool archived);

}  // namespace runner::store
