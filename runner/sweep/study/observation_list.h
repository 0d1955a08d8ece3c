#pragma once

#include <cstdint>
#include <vector>

#include "components/sampler/sampler.h"
#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/study.h"

namespace runner::sweep {

/// A study in the form for samplers, rebuilt only when something changed. Borrows the sweep.
class ObservationList {
 public:
  explicit ObservationList(const Sweep& sweep) : sweep_(sweep) {}

  /// `changes` of the study that `variants` and `trials` are from, the same one each time.
  const std::vector<components::sampler::Observation>& update(const std::vector<std::int64_t>& changes,
                                                              const std::vector<Variant>& variants,
                                                              const std::vector<Trial>& trials);

 private:
  const Sweep& sweep_;
  std::size_t changes_seen_ = 0;
  std::vector<components::sampler::Observation> observations_;
};

}  // namespace runner::sweep
