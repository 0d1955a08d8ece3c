#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

struct Pytree;

// What Accelerate calls collectives, with its semantics, over what a ProcessGroup does. Those that take a group are to
// be called by all ranks or by none, block until all have called, and fail as the group does. `site` says what for.
// With one rank each hands back what it got (a 0-d tensor gathers to one of shape [1]).

/// The ranks' tensors one after another along their first dim, by rank. Every shape is the same on all ranks.
Pytree gather(ProcessGroup& group, const Pytree& value, const char* site);

enum class Reduction { kSum, kMean, kMax, kNone };  ///< kNone: the sum, as in Accelerate
/// The same entry of all ranks made one. Accelerate's `scale` does nothing outside XLA, so there is none here.
Pytree reduce(ProcessGroup& group, const Pytree& value, Reduction reduction, const char* site);

/// Makes each tensor (of a floating type) the mean of all ranks', in place; all of them travel at once.
void take_mean(ProcessGroup& group, const std::vector<at::Tensor>& tensors, const char* site);

/// What rank `from` has; the others' tensors say the shapes.
Pytree broadcast(ProcessGroup& group, const Pytree& value, int from, const char* site);

/// The lists of all ranks, joined by rank. They may be of any length.
core::Node gather_object(ProcessGroup& group, const core::Node& list, const char* site);
/// The list of rank `from`.
core::Node broadcast_object_list(ProcessGroup& group, const core::Node& list, int from, const char* site);

struct PadOptions {
  std::int64_t dim = 0;  ///< below 0 counts from the last one; a tensor without it is left as it is
  double pad_index = 0;  ///< what is filled in
  bool pad_first = false;
};
/// Every tensor as long along `dim` as the longest of all ranks.
Pytree pad_across_processes(ProcessGroup& group, const Pytree& value, const PadOptions& options, const char* site);

struct Share {
  int rank = 0, size = 1;
  bool apply_padding = false;  ///< repeats the last item until all shares are as long as the longest
};
/// The rank's part of a list, a tensor's rows, or of each entry of a mapping: consecutive, the first ranks' longer by
/// one where it does not divide. Asks nobody. RunError when the entries of a mapping are not of one length.
Pytree split_between_processes(const Pytree& value, const Share& share);

/// Where a walk over a data set stands; the loader's side of gather_for_metrics.
struct EpochEnd {
  bool last_batch = false;
  std::int64_t remainder = 0;  ///< samples of the last round of batches over all ranks; 0: it is full
};
/// As gather, without the samples that were repeated to fill up the last round of batches.
Pytree gather_for_metrics(ProcessGroup& group, const Pytree& value, const EpochEnd& end, const char* site);
/// As gather_object, in the same way.
core::Node gather_object_for_metrics(ProcessGroup& group, const core::Node& list, const EpochEnd& end,
                                     const char* site);

/// Comes back when all ranks are here.
void wait_for_everyone(ProcessGroup& group, const char* site);

/// `body` on rank 0, then on all others at once.
void main_process_first(ProcessGroup& group, const char* site, const std::function<void()>& body);

/// A flag that any rank sets and all ranks see.
class Trigger {
 public:
  void set() { set_ = true; }
  /// Whether a rank had set it; then it is cleared on all of them. A collective.
  bool check(ProcessGroup& group, const char* site);

 private:
  bool set_ = false;
};

}  // namespace runner::distributed
