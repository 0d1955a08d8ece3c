#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runner/store/run_reader.h"

namespace runner::store {

/// `<output_dir>/index.db`: what read_run() found in folders that have not changed since. Only a cache: every call
/// tolerates a file that is missing, damaged, of another format, or in a read-only folder.
class RunIndex {
 public:
  struct Row {
    std::string fingerprint;  ///< sizes and times of the run's databases
    RunSummary run;           ///< as read_run() gave it
    std::string leaves;       ///< pack_leaves() of its recipe; not loaded: each_recipe() has them
  };

  explicit RunIndex(const std::string& output_dir) : output_dir_(output_dir) {}

  /// By folder name.
  std::unordered_map<std::string, Row> load() const;
  /// Passes the folder name of each run and the pack_leaves() of its recipe, valid only during the call.
  void each_recipe(const std::function<void(std::string_view folder, std::string_view leaves)>& give) const;
  void store(const std::vector<std::pair<std::string, Row>>& changed, const std::vector<std::string>& gone) const;
  /// Removes the file from a folder to be deleted.
  void remove() const;

 private:
  std::string path() const { return output_dir_ + "/index.db"; }

  std::string output_dir_;
};

}  // namespace runner::store
