#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/store/database/sqlite.h"
#include "runner/store/run_files.h"

namespace runner::store {

/// The tables of run.db in memory, for consecutive light runs of one process: a run's data are collected and written as
/// a whole. Clearing them costs a tenth of creating them.
class InMemoryRun {
 public:
  /// Keeps nothing open: a process with this may fork.
  InMemoryRun();

  /// Empty tables for the run of that folder. Valid until the next call.
  Database& begin(const std::string& run_dir);
  /// The content of an ended run's file, from memory. Nothing if the last run was another one, or moved to its file.
  std::optional<RunRecord> record_of(const std::string& run_dir, const std::vector<std::string>& metrics);

 private:
  void empty();

  std::string image_;  ///< of tables without a row
  std::optional<Database> database_;
  std::string run_dir_;  ///< whose rows there are
};

}  // namespace runner::store
