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

/// The gradients of each step, put together over the ranks. Every rank goes through the same exchanges, however many
/// passes of its own it makes.
class RankGradients {
 public:
  enum class Use { kAfterPasses, kInPass };  ///< kInPass: each gradient as soon as it is whole, through relay()

  /// `parameters` outlive it; `notes`: numbers that each rank tells with every step.
  RankGradients(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
                const DdpOptions& options, std::size_t notes, Use use = Use::kAfterPasses);
  ~RankGradients();

  /// By how much more a rank's gradients count before they are exchanged: an exchange that takes a mean divides, and
  /// where nothing is exchanged the mean of the ranks' steps of plain SGD is the step of all of them together.
  double weight() const;
  /// Before each backward pass of the rank; `last`: it makes no other one in this step.
  void begin_pass(bool last);
  /// After it.
  void end_pass(bool last);
  /// After all of them, or after one that failed; `most`: passes of the busiest rank. Blocks until the gradients are
  /// those of the whole step, unless they are used in the pass. Returns the notes by rank.
  std::vector<std::vector<double>> finish(std::int64_t most, std::span<const double> notes);
  /// What the options ask to look at in the gradients of a whole step. RunError where it does not hold.
  void check();
  /// The same where they were used in the pass; by parameter, whether any rank had one.
  void check_used(std::vector<bool> used);

  /// Null where gradients are used after the passes, or are not exchanged.
  distributed::StreamingReducer* relay() { return relay_.get(); }

  /// What the exchange has to remember, of each rank its own; null where that is nothing.
  core::Stateful* state() { return options_.exchange.has_state() ? exchange_.get() : nullptr; }

 private:
  void begin_exchange();
  void end_exchange();
  std::vector<std::vector<double>> exchange_notes(std::span<const double> notes) const;
  void check_reduction() const;

  distributed::ProcessGroup& ranks_;
  const std::vector<components::NamedTensor>& parameters_;
  const DdpOptions options_;
  std::unique_ptr<distributed::CommHook> exchange_;
  std::unique_ptr<distributed::GradientBuckets> buckets_;  // where gradients are exchanged: this one,
  std::unique_ptr<distributed::StreamingReducer> relay_;   // or this one, which hands them on in the pass
  std::int64_t exchanges_ = 0;                             // of this step that are over
  bool is_open_ = false;                                   // one more is under way
  std::vector<bool> used_;                                 // by parameter, in the first step
};

}  // namespace runner::train
