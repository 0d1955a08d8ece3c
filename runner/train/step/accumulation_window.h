#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/train/experiment/stepper_options.h"

namespace runner::train {

struct Experiment;

/// One forward pass of this process.
struct MicroBatch {
  components::TensorMap tensors;
  std::int64_t samples = 0;
  std::int64_t count = 0;                    ///< elements in the loss's mean
  std::vector<std::int64_t> further_counts;  ///< and in its further ones
  std::int64_t others_before = 0;            ///< micro-batches of other ranks since the previous one
};

/// Those of `options.loader` for this process: the ranks take micro-batches in turn.
Loader::Options loader_options(const Experiment& experiment, const StepperOptions& options);

/// Forward passes of a full window over all processes.
std::int64_t full_passes(const StepperOptions& options, std::int64_t micro_batch_size);

/// The samples of one optimizer step with their owners and weights. All are read before the first forward pass: the
/// means need the totals, and each micro-batch's gradient then has its final weight in the backward pass.
class AccumulationWindow {
 public:
  /// All of them outlive this.
  AccumulationWindow(const Experiment& experiment, Loader& loader, const StepperOptions& options);

  /// Reads from the loader's position, in passes of this many samples; the recipe's micro-batches set the end. With
  /// several processes a collective, unless each knows the others' counts.
  void fetch(std::int64_t micro_batch_size);
  /// Frees what no later step reuses, before the optimizer needs room.
  void release();
  void clear() { mine_.clear(); }
  /// Adds kEstimate to each micro-batch, of a sum over the samples of all processes.
  void set_estimate(double sum);
  /// Adds kReferenceChosen and kReferenceRejected to one of mine(), of Loss::reference_of().
  void set_reference(std::size_t micro, const at::Tensor& figures_B2);

  /// Those of this process.
  const std::vector<MicroBatch>& mine() const { return mine_; }
  /// Factor for the sum of this process's losses, so that those of all processes add up to the window's mean.
  double weight_of(const MicroBatch& micro) const;
  /// Factor for the sum of all weighted losses: the logged loss is a mean, also where the window is short.
  double loss_factor() const;

  // Of all processes:
  std::int64_t passes() const { return static_cast<std::int64_t>(pieces_.size()); }
  std::int64_t recipe_batches() const { return recipe_batches_; }  ///< micro-batches of the window in the recipe's size
  std::int64_t samples() const { return samples_; }
  /// Where samples differ in length; 0 elsewhere. Positions of the input without padding, and targets that count.
  std::int64_t tokens() const { return tokens_; }
  std::int64_t target_tokens() const { return target_tokens_; }
  /// FLOPs of these samples without their padding; 0 where the data set knows the lengths of all its samples, and the
  /// mean of all is enough.
  double flops() const { return flops_; }
  /// Whether the window has as many samples as the recipe says, which an epoch's end may cut short.
  bool is_full() const { return samples_ == options_.loader.micro_batch_size * options_.window_batches; }
  /// Micro-batches of the busiest process, in the recipe's size.
  std::int64_t busiest_batches() const;
  /// Passes of the busiest process.
  std::int64_t busiest_passes() const;
  /// Micro-batches of other ranks after this rank's last one.
  std::int64_t others_after() const { return others_after_; }
  /// The part of `all` the window's samples that a rank had.
  std::vector<std::int64_t> samples_of(int rank, const std::vector<std::int64_t>& all) const;

 private:
  void plan(std::int64_t micro_batch_size);
  void dispatch();
  void settle();
  void count();
  void sum_over_ranks();
  void set_ratios();
  void count_tokens(const components::TensorMap& batch);
  double flops_of(std::int64_t positions);

  const Experiment& experiment_;
  Loader& loader_;
  const StepperOptions& options_;
  std::vector<std::int64_t> pieces_;  // samples of each forward pass
  std::vector<int> owners_;           // rank of the pass
  std::vector<MicroBatch> mine_;
  std::int64_t recipe_batches_ = 0, full_passes_ = 0, others_after_ = 0;
  std::int64_t count_ = 0, samples_ = 0;      // of all processes
  std::vector<std::int64_t> further_counts_;  // likewise
  const bool differ_in_length_, is_stream_;
  std::int64_t tokens_ = 0, target_tokens_ = 0;  // of all processes, as of count()
  double flops_ = 0;
  std::map<std::int64_t, double> flops_by_length_;  // of one sample
};

}  // namespace runner::train
