#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runner/core/tensor_fwd.h"
#include "runner/distributed/comm_hook.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// Puts gradients together over all ranks, as an exchange does it (adds them up, or takes their mean), while the
/// backward pass still runs. Parameters are cut into buckets once, from the last one to the first, as a backward pass
/// gets to them; a bucket sets out as soon as all of its gradients are there and all buckets before it have set out, so
/// that the order is the same on every rank. The cut depends on the parameters and `bucket_bytes` alone: the same run
/// has the same bits each time.
///
/// Each rank also sends a few numbers of its own along, in the last bucket: they cost no collective of their own unless
/// the gradients are compressed.
class GradientBuckets {
 public:
  struct Options {
    std::int64_t bucket_bytes = 25 << 20;
    std::size_t notes = 0;  ///< numbers that each rank sends along
  };

  /// Looks at the parameters (those that need a gradient; of any floating type, summed in float32) as long as it lives.
  /// `exchange` says how buckets travel, and lives longer.
  GradientBuckets(ProcessGroup& group, CommHook& exchange, const std::vector<at::Tensor>& parameters,
                  const Options& options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// The gradients of the backward pass that follows set out: of the last one of a step, or of each. To be called by a
  /// rank that makes none, too, and as often on every rank.
  void begin();
  /// After such a pass, where another one of the step follows: what is exchanged adds up. What is still under way goes
  /// on beside the next forward pass.
  void end_pass();
  /// After the last one: blocks until the gradients of the parameters are those of all ranks together; a parameter that
  /// no rank has a gradient for has none. Returns the notes of all ranks, by rank, to the last bit.
  std::vector<std::vector<double>> finish(std::span<const double> notes);

  std::int64_t bytes() const;  ///< that the buckets take
  std::size_t buckets() const;

 private:
  class Hook;
  struct Bucket;

  void arrived(std::size_t parameter);
  void set_out_those_ready();
  void set_out_rest();
  void take_in_pass();
  void write_notes(std::span<const double> notes);
  std::vector<std::vector<double>> read_notes(std::size_t count) const;

  ProcessGroup& group_;
  CommHook& exchange_;
  std::vector<at::Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<at::Tensor> views_;       // by parameter: its part of the bucket, in its shape
  std::vector<bool> arrived_;           // by parameter, in this pass
  std::vector<bool> has_gradient_;      // by parameter, in this step
  std::vector<at::Tensor> tail_;        // one: behind the last bucket, or memory of its own
  std::size_t notes_ = 0, next_ = 0;    // the next bucket to set out
  bool armed_ = false, under_way_ = false;
  int passes_ = 0;  // of this step that came back
};

}  // namespace runner::distributed
