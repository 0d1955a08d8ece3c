#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/store/database/sqlite.h"
#include "runner/store/run_files.h"

namespace runner::store {

/// The tables of run.db in memory, for light runs of one process, one after the other: what a run has to say goes in,
/// and is written as a whole. To empty them costs a tenth of making them.
class InMemoryRun {
 public:
  /// Nothing stays open: processes may be forked from one that has made this.
  InMemoryRun();

  /// For the run of that folder, as they are before its first word. Valid until the next call.
  Database& begin(const std::string& run_dir);
  /// What the file of a run that has ended says, from where it was written. Nothing where the last run was another one,
  /// or went on in its file.
  std::optional<RunRecord> record_of(const std::string& run_dir, const std::vector<std::string>& metrics);

 private:
  void empty();

  std::string image_;  ///< of tables without a row
  std::optional<Database> database_;
  std::string run_dir_;  ///< whose rows there are
};

}  // namespace runner::store
