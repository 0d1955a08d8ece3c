#pragma once

#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "tests/support/process/test_run.h"

namespace tests {

namespace ranks_recipes {

/// 4 micro-batches a step: 3 processes cannot share them evenly, nor the 7 samples of an evaluation's batch. The text's
/// epoch ends in the middle of the run.
extern const char* const kGpt;
/// 41 rows: the last micro-batch of an epoch has one sample, and the last step 9 of them. 9 rows are evaluated,
/// 5 and 4 of them at once.
extern const char* const kTable;

}  // namespace ranks_recipes

/// A folder with a recipe for several processes and what it reads: corpus.txt, data.csv (41 rows), val.csv (9 rows).
class RanksTestRun : public TestRun {
 public:
  explicit RanksTestRun(const std::string& recipe);

  /// Of the run's newest branch and those before it.
  std::vector<runner::store::SeriesPoint> series(const std::string& name) const;
  /// The command of a run whose lines of debugging tell where it is.
  std::vector<std::string> verbose(const std::vector<std::string>& settings) const;
};

/// A run of this recipe by one process, trained once for all who ask.
const RanksTestRun& trained_alone(const std::string& recipe);

/// The setting for this many processes.
std::string processes(int count);

}  // namespace tests
