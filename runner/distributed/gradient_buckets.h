#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runner/core/tensor_fwd.h"
#include "runner/distributed/comm_hook.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// Reduces gradients over all ranks (sum or mean, depending on the hook) during the backward pass. Parameters are
/// assigned to buckets once, from the last to the first, in the order of a backward pass; a bucket is launched as soon
/// as all of its gradients are ready and all earlier buckets are launched, so the order is the same on every rank. The
/// assignment depends on the parameters and `bucket_bytes` only: the same run has the same bits each time.
///
/// Each rank also sends a few notes in the last bucket: they cost an extra collective only if the gradients are
/// compressed.
class GradientBuckets {
 public:
  struct Options {
    std::int64_t bucket_bytes = 25 << 20;
    std::size_t notes = 0;  ///< number of notes per rank
  };

  /// Hooks the parameters (those that need a gradient; of any floating type, summed in float32) as long as it lives.
  /// `comm_hook` moves the buckets and must outlive this.
  GradientBuckets(ProcessGroup& group, CommHook& comm_hook, const std::vector<at::Tensor>& parameters,
                  const Options& options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Call before a backward pass that exchanges its gradients: the last one of a step, or each. Call equally often on
  /// every rank, also on one without a pass.
  void begin();
  /// Call after such a pass if another one of the step follows: the results add up. What is in flight overlaps with the
  /// next forward pass.
  void end_pass();
  /// Call after the last one: blocks until the gradients are reduced over all ranks; a parameter without a gradient on
  /// any rank has none. Returns the notes of all ranks, by rank, to the last bit.
  std::vector<std::vector<double>> finish(std::span<const double> notes);

  std::int64_t bytes() const;  ///< memory of the buckets
  std::size_t buckets() const;

 private:
  class Hook;
  struct Bucket;

  void mark_ready(std::size_t parameter);
  void start_ready_buckets();
  void start_remaining_buckets();
  void accumulate_finished_pass();
  void write_notes(std::span<const double> notes);
  std::vector<std::vector<double>> read_notes(std::size_t count) const;

  ProcessGroup& group_;
  CommHook& comm_hook_;
  std::vector<at::Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;     // by parameter
  std::vector<at::Tensor> views_;          // by parameter: its part of the bucket, in its shape
  std::vector<bool> ready_;                // by parameter, in this pass
  std::vector<bool> has_gradient_;         // by parameter, in this step
  std::vector<at::Tensor> tail_;           // one exchange: after the last bucket, or in its own memory
  std::vector<at::Tensor> readable_tail_;  // the same on the CPU
  std::size_t notes_ = 0, next_ = 0;       // the next bucket to launch
  bool armed_ = false, under_way_ = false;
  int passes_ = 0;  // completed passes of this step
};

}  // namespace runner::distributed
