#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::resolve {

/// A value in which two settled recipes differ. A value that is absent in one of them has the location of the mapping
/// that could hold it.
struct Change {
  std::string path;                         ///< `optimizer.lr`, `model.layers[2].p`
  std::optional<core::Node> before, after;  ///< nothing: absent
  core::Location before_location, after_location;

  std::string before_text() const;  ///< as JSON; `absent`
  std::string after_text() const;
};

/// Leaf by leaf, in the order of `after`; lists of different lengths as a whole. What one of them does not have and the
/// other has as null or by its default is no difference: the one was written by a program that did not know the key.
/// Nor is a key that `after` leaves unset and `before` has with its former default (former_values.h).
std::vector<Change> list_changes(const core::Node& before, const core::Node& after);

/// The settled recipe `resolved_path` of the run in `run_dir`, located as written. Keys have today's words.
core::Result<core::Node> read_recorded_recipe(const std::string& run_dir, const std::string& resolved_path);

/// Gives each value that is read from a settled recipe in `run_dir` its location in the recipe as it was written, where
/// the run folder has that and it says the same (a later `--set` may have changed it); else it keeps its line in the
/// settled one, which the author has never seen. Values from elsewhere, such as flags, keep their location.
void locate_as_written(core::Node& settled, const std::string& run_dir);

}  // namespace runner::resolve
