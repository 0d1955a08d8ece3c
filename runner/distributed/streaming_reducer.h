#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runner/core/tensor_fwd.h"
#include "runner/distributed/bucket_assignment.h"
#include "runner/distributed/comm_hook.h"

namespace runner::distributed {

/// Reduces gradients over all ranks during a backward pass, delivers each one once reduced, and frees it: for an
/// optimizer that steps in the backward pass. Buckets are those of GradientBuckets, launched in the same order on every
/// rank; one is in flight while the pass fills the next. So only the gradients of two buckets, and those ahead of their
/// turn, are in memory.
class StreamingReducer {
 public:
  /// Gets a parameter's index and its gradient over all ranks.
  using Receive = std::function<void(std::size_t parameter, at::Tensor gradient)>;

  /// `comm_hook` outlives this and keeps no state of a bucket.
  StreamingReducer(CommHook& comm_hook, const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);
  ~StreamingReducer();

  /// Call before a backward pass, or instead of one if this rank has no samples: equally often on every rank.
  void begin(Receive receive);
  /// Takes the gradient that the pass just made out of the parameter.
  void mark_ready(std::size_t parameter);
  /// Call after it. Blocks until all gradients are delivered, except those that no rank has. By parameter, whether any
  /// rank has one.
  std::vector<bool> finish();

 private:
  struct Bucket;

  void open(Bucket& bucket, std::size_t number);
  void launch_next();
  void deliver();

  CommHook& comm_hook_;
  std::vector<at::Tensor> parameters_;  // that need a gradient, from the last one to the first
  std::vector<std::size_t> places_;     // by member: index among the given parameters
  std::vector<std::size_t> index_of_;   // by index: position among those
  const BucketAssignment assignment_;
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // the next bucket to launch; the previous one is in flight
  bool in_flight_ = false;
  Receive receive_;
  std::vector<bool> used_;  // by index
};

}  // namespace runner::distributed
