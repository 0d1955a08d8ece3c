#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/tensor_fwd.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

struct Pytree;

// Accelerate's collectives, with its semantics, on top of ProcessGroup. Call those with a group on all ranks or on
// none; they block until all have called, and fail as the group does. `site` names the purpose. With one rank each
// returns its input (a 0-d tensor gathers to one of shape [1]).

/// The ranks' tensors concatenated along their first dim, by rank. Shapes must be equal on all ranks.
Pytree gather(ProcessGroup& group, const Pytree& value, const char* site);

enum class Reduction { kSum, kMean, kMax, kNone };  ///< kNone: the sum, as in Accelerate
/// Reduces each entry over all ranks. Accelerate's `scale` does nothing outside XLA, so it is omitted.
Pytree reduce(ProcessGroup& group, const Pytree& value, Reduction reduction, const char* site);

/// Makes each tensor (of a floating type) the mean of all ranks', in place; in one collective.
void take_mean(ProcessGroup& group, const std::vector<at::Tensor>& tensors, const char* site);

/// The value of rank `from`; the others' tensors give the shapes.
Pytree broadcast(ProcessGroup& group, const Pytree& value, int from, const char* site);

/// The lists of all ranks, concatenated by rank. Lengths may differ.
core::Node gather_object(ProcessGroup& group, const core::Node& list, const char* site);
/// The list of rank `from`.
core::Node broadcast_object_list(ProcessGroup& group, const core::Node& list, int from, const char* site);

struct PadOptions {
  std::int64_t dim = 0;  ///< negative counts from the last one; a tensor without it stays unchanged
  double pad_index = 0;  ///< value to pad with
  bool pad_first = false;
};
/// Pads every tensor along `dim` to the longest of all ranks.
Pytree pad_across_processes(ProcessGroup& group, const Pytree& value, const PadOptions& options, const char* site);

struct Share {
  int rank = 0, size = 1;
  bool apply_padding = false;  ///< repeats the last item until all shares are as long as the longest
};
/// The rank's part of a list, a tensor's rows, or of each entry of a mapping: consecutive; the first ranks' are longer
/// by one if it does not divide. No communication. RunError when the entries of a mapping are not of one length.
Pytree split_between_processes(const Pytree& value, const Share& share);

/// Position of a pass over a data set; the loader's side of gather_for_metrics.
struct EpochEnd {
  bool last_batch = false;
  std::int64_t remainder = 0;  ///< samples of the last round of batches over all ranks; 0: it is full
};
/// As gather, without the samples that were repeated to fill up the last round of batches.
Pytree gather_for_metrics(ProcessGroup& group, const Pytree& value, const EpochEnd& end, const char* site);
/// As gather_object, in the same way.
core::Node gather_object_for_metrics(ProcessGroup& group, const core::Node& list, const EpochEnd& end,
                                     const char* site);

/// Returns when all ranks have called.
void wait_for_everyone(ProcessGroup& group, const char* site);

/// `body` on rank 0, then on all others at once.
void main_process_first(ProcessGroup& group, const char* site, const std::function<void()>& body);

/// A flag that any rank sets and all ranks see.
class Trigger {
 public:
  void set() { set_ = true; }
  /// Whether any rank has set it; clears it on all ranks. A collective.
  bool check(ProcessGroup& group, const char* site);

 private:
  bool set_ = false;
};

}  // namespace runner::distributed
