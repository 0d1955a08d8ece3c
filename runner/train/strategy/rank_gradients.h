#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runner/core/state.h"
#include "runner/train/experiment/ddp_options.h"

namespace components {
struct NamedTensor;
}
namespace runner::distributed {
class GradientBuckets;
class StreamingReducer;
class ProcessGroup;
}  // namespace runner::distributed

namespace runner::train {

/// Reduces the gradients of each step over the ranks. Every rank makes the same exchanges, regardless of its number of
/// passes.
class RankGradients {
 public:
  enum class Use {
    kAfterPasses,
    kInPass,  ///< each gradient as soon as it is complete, through reducer()
    kApart    ///< the caller adds them up over the ranks; this one exchanges the notes alone
  };

  /// `parameters` outlive this; `notes`: numbers that each rank sends with every step.
  RankGradients(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
                const DdpOptions& options, std::size_t notes, Use use = Use::kAfterPasses);
  ~RankGradients();

  /// Factor for a rank's gradients before the exchange: compensates for an exchange that averages, and without an
  /// exchange makes the mean of the ranks' plain SGD steps equal their joint step.
  double weight() const;
  /// Call before each backward pass of the rank; `last`: its last one in this step.
  void begin_pass(bool last);
  /// Call after it.
  void end_pass(bool last);
  /// Call after all of them, or after a failed one; `most`: passes of the busiest rank. Blocks until the gradients are
  /// those of the whole step, unless they are used in the pass. Returns the notes by rank.
  std::vector<std::vector<double>> finish(std::int64_t most, std::span<const double> notes);
  /// Checks the gradients of a whole step as the options ask. RunError on a violation.
  void check();
  /// The same for gradients used in the pass; by parameter, whether any rank had one.
  void check_used(std::vector<bool> used);

  /// Null if gradients are used after the passes, or are not exchanged.
  distributed::StreamingReducer* reducer() { return reducer_.get(); }

  /// State of the exchange on each rank; null if it has none.
  core::Stateful* state() { return options_.comm_hook.has_state() ? comm_hook_.get() : nullptr; }

 private:
  void begin_exchange();
  void end_exchange();
  std::vector<std::vector<double>> exchange_notes(std::span<const double> notes) const;
  void check_reduction() const;

  distributed::ProcessGroup& ranks_;
  const std::vector<components::NamedTensor>& parameters_;
  const DdpOptions options_;
  std::unique_ptr<distributed::CommHook> comm_hook_;
  std::unique_ptr<distributed::GradientBuckets> buckets_;   // for exchanged gradients: this one,
  std::unique_ptr<distributed::StreamingReducer> reducer_;  // or this one, which delivers them in the pass
  std::int64_t exchanges_ = 0;                              // completed passes of this step
  bool is_open_ = false;                                    // a pass is in progress
  std::vector<bool> used_;                                  // by parameter, in the first step
};

}  // namespace runner::train
