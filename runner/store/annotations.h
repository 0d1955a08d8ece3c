#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/store/database/sqlite.h"

namespace runner::store {

/// What people said about a run.
struct Annotations {
  std::string label;  ///< the name given later
  std::vector<std::string> tags;
  std::vector<std::pair<std::int64_t, std::string>> notes;  ///< time in ms, text
  bool archived = false;                                    ///< lists leave the run out
};

/// Empty where there are none, or where they cannot be read: the run itself is what counts.
Annotations read_annotations(const std::string& run_dir);

/// annotations.db to write to, made where it is missing: whoever has something to say about a run writes there, also
/// while the run goes on. Errors: SqliteError; RunError when it is of a newer format.
Database open_annotations(const std::string& run_dir);

/// Each is on disk when it returns. Errors as open_annotations().
void set_label(const std::string& run_dir, const std::string& label);  ///< "" takes the name away that was given
void add_tags(const std::string& run_dir, const std::vector<std::string>& tags);
/// The first tag that the run does not have, and then none is taken away; "" when all of them are.
std::string remove_tags(const std::string& run_dir, const std::vector<std::string>& tags);
void add_note(const std::string& run_dir, std::int64_t time_ms, const std::string& text);
void set_archived(const std::string& run_dir, bool archived);

}  // namespace runner::store
