#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runner/core/tensor_fwd.h"
#include "runner/distributed/bucket_assignment.h"
#include "runner/distributed/comm_hook.h"

namespace runner::distributed {

/// Puts gradients together over all ranks while a backward pass makes them, hands each on once it is that of all, and
/// forgets it: for an optimizer that steps in the backward pass. Buckets are those of GradientBuckets and set out in
/// the same order on every rank; one travels while the pass fills the next. So there are no more gradients than those
/// of two buckets, and those that came before their turn.
class StreamingReducer {
 public:
  /// Gets a parameter's place among those given and its gradient over all ranks.
  using Receive = std::function<void(std::size_t parameter, at::Tensor gradient)>;

  /// `exchange` lives longer, and remembers nothing of a bucket.
  StreamingReducer(CommHook& exchange, const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);
  ~StreamingReducer();

  /// Before a backward pass, or instead of one where this rank has no samples: as often on every rank.
  void begin(Receive receive);
  /// Takes the gradient that the pass has just made out of the parameter.
  void arrived(std::size_t parameter);
  /// After it. Blocks until all gradients are handed on; those that no rank has are not. By parameter, whether one has.
  std::vector<bool> finish();

 private:
  struct Bucket;

  void open(Bucket& bucket, std::size_t number);
  void set_out();
  void hand_on();

  CommHook& exchange_;
  std::vector<at::Tensor> parameters_;  // that need a gradient, from the last one to the first
  std::vector<std::size_t> places_;     // by those: among the ones given
  std::vector<std::size_t> index_of_;   // by place: among those
  const BucketCut cut_;
  std::vector<Bucket> buckets_;
  std::size_t next_ = 0;  // the next bucket to set out; the one before it is under way
  bool travels_ = false;
  Receive receive_;
  std::vector<bool> used_;  // by place
};

}  // namespace runner::distributed
