#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "components/callback/callback.h"

namespace components::callback {

/// One evaluated sample.
struct EvalSample {
  std::int64_t index = 0;
  double loss = 0;                                                ///< mean over the elements that count
  double probability = std::numeric_limits<double>::quiet_NaN();  ///< of the class that was predicted
  std::vector<double> prediction;                                 ///< a class; ids, one a position; or values
};

/// The first samples of a data set and those with the largest loss, regardless of batches and processes.
class EvalSamples {
 public:
  EvalSamples(std::int64_t first, std::int64_t worst) : first_max_(first), worst_max_(worst) {}

  void add(const EvalBatch& batch);
  /// Serialized for another process, and back.
  std::string bytes() const;
  void add(const std::string& bytes);

  /// By index.
  const std::vector<EvalSample>& first() const { return first_; }
  /// The largest loss first, NaN before all.
  const std::vector<EvalSample>& worst() const { return worst_; }

 private:
  void keep(const EvalSample& sample);
  bool is_among_worst(const EvalSample& sample) const;

  std::int64_t first_max_, worst_max_;
  std::vector<EvalSample> first_, worst_;
};

}  // namespace components::callback
