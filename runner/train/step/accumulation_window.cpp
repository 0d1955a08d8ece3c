#include "runner/train/step/accumulation_window.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "components/loss/loss.h"
#include "components/tensor/preferences.h"
#include "components/tensor/tensor_spec.h"
#include "runner/distributed/process_group.h"
#include "runner/train/data/batch_dispatch.h"
#include "runner/train/experiment/experiment.h"

namespace runner::train {
namespace {

/// Whether every sample has the same weight in the loss, regardless of its targets.
bool counts_are_known(const Experiment& experiment) {
  if (experiment.loss->further_means() > 0) return false;
  const components::BatchSpec& data = experiment.train_data->signature();
  if (data.padded()) return false;
  if (!experiment.loss->count_is_static()) return false;
  const std::optional<std::int64_t> ignored = experiment.loss->ignore_index();
  if (!ignored) return true;
  const components::TensorSpec* target = data.find(components::kTarget);
  if (target == nullptr || target->has_ignored) return false;
  const std::int64_t classes = std::max(target->vocab_size, target->num_classes);
  return *ignored < 0 || (classes > 0 && *ignored >= classes);
}

}  // namespace

Loader::Options loader_options(const Experiment& experiment, const StepperOptions& options) {
  Loader::Options mine = options.loader;
  mine.rank = experiment.rank();
  mine.ranks = experiment.world_size();
  return mine;
}

std::int64_t full_passes(const StepperOptions& options, std::int64_t micro_batch_size) {
  const std::int64_t samples = options.loader.micro_batch_size * options.window_batches;
  return samples / micro_batch_size + (samples % micro_batch_size > 0 ? 1 : 0);
}

AccumulationWindow::AccumulationWindow(const Experiment& experiment, Loader& loader, const StepperOptions& options)
    : experiment_(experiment),
      loader_(loader),
      options_(options),
      differ_in_length_(experiment.train_data->signature().padded()),
      is_stream_(experiment.train_data->is_stream()) {}

// The recipe's micro-batches within one epoch are cut into passes: the micro-batches themselves, unless those were too
// large for memory.
void AccumulationWindow::plan(std::int64_t micro_batch_size) {
  pieces_.clear();
  recipe_batches_ = 0;
  Accumulation accumulation(options_.window_batches, options_.sync_with_dataloader);
  std::int64_t sample = loader_.position().sample, stretch = 0;
  for (bool complete = false; !complete;) {
    const std::int64_t count = loader_.batch_at(sample);
    sample += count;
    stretch += count;
    ++recipe_batches_;
    const bool epoch_ended = sample >= loader_.samples_per_epoch();
    complete = accumulation.advance(epoch_ended);
    if (!epoch_ended && !complete) continue;
    for (std::int64_t from = sample - stretch; stretch > 0; from += pieces_.back(), stretch -= pieces_.back()) {
      pieces_.push_back(std::min(loader_.batch_at(from, micro_batch_size), stretch));
    }
    sample = 0;
  }
}

void AccumulationWindow::fetch(std::int64_t micro_batch_size) {
  RECORD_USER_SCOPE("data");
  plan(micro_batch_size);
  full_passes_ = full_passes(options_, micro_batch_size);
  mine_.resize(pieces_.size());  // reuses the memory of the previous window
  owners_.clear();
  std::size_t read = 0;
  samples_ = 0;
  for (const std::int64_t samples : pieces_) {
    samples_ += samples;
    owners_.push_back(loader_.owner());
    if (loader_.is_mine()) {
      loader_.next(samples, mine_[read++].tensors);
    } else {
      loader_.skip(samples);
    }
  }
  if (experiment_.ranks != nullptr && options_.loader.rank_0_reads) dispatch();
  settle();
  count();
}

void AccumulationWindow::dispatch() {
  std::vector<components::TensorMap> batches;
  for (MicroBatch& micro : mine_) batches.push_back(std::move(micro.tensors));
  dispatch_batches(*experiment_.ranks, owners_, batches);
  for (std::size_t i = 0; i < batches.size(); ++i) mine_[i].tensors = std::move(batches[i]);
}

/// Facts about each of this process's micro-batches.
void AccumulationWindow::settle() {
  std::size_t mine = 0;
  others_after_ = tokens_ = target_tokens_ = 0;
  flops_ = 0;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    ++others_after_;
    if (owners_[i] != experiment_.rank()) continue;
    MicroBatch& micro = mine_[mine++];
    micro.others_before = std::exchange(others_after_, 0) - 1;
    micro.samples = pieces_[i];
    micro.count = experiment_.loss->count(micro.tensors);
    micro.further_counts = experiment_.loss->further_counts(micro.tensors);
    if (differ_in_length_) count_tokens(micro.tensors);
  }
  mine_.resize(mine);
}

/// Of a batch [B, T] without a mask each token has a target.
void AccumulationWindow::count_tokens(const components::TensorMap& batch) {
  const at::Tensor* target = batch.find(components::kTarget);
  const at::Tensor* mask = batch.find(components::kAttentionMask);
  const std::int64_t targets = target != nullptr ? target->ne(components::kPadTarget).sum().item<std::int64_t>() : 0;
  target_tokens_ += targets;
  if (mask == nullptr) {
    tokens_ += targets;
    return;
  }
  const at::Tensor lengths = mask->sum(1).contiguous();
  for (const std::int64_t length : std::span(lengths.const_data_ptr<std::int64_t>(), mask->size(0))) {
    tokens_ += length;
    if (is_stream_) flops_ += flops_of(length);
  }
}

double AccumulationWindow::flops_of(std::int64_t positions) {
  const auto [at, is_new] = flops_by_length_.try_emplace(positions, 0.0);
  if (is_new) at->second = experiment_.model->training_flops(std::max<std::int64_t>(1, positions));
  return at->second;
}

void AccumulationWindow::count() {
  count_ = 0;
  further_counts_.assign(experiment_.loss->further_means(), 0);
  for (const MicroBatch& micro : mine_) {
    count_ += micro.count;
    for (std::size_t i = 0; i < further_counts_.size(); ++i) further_counts_[i] += micro.further_counts[i];
  }
  if (experiment_.ranks != nullptr) sum_over_ranks();
  if (!further_counts_.empty()) set_ratios();
}

// The denominator of the mean is known without the other ranks' batches, unless targets may be ignored.
void AccumulationWindow::sum_over_ranks() {
  const bool is_asked = options_.mean == WindowMean::kElements;
  if (is_asked && counts_are_known(experiment_)) {
    if (!mine_.empty()) count_ = mine_.front().count / mine_.front().samples * samples_;
    return;
  }
  if (!is_asked && !differ_in_length_) return;
  // Counts are exact as double up to 2^53.
  const at::Tensor sums = at::empty({4 + static_cast<std::int64_t>(further_counts_.size())}, at::kDouble);
  auto* const sum = sums.mutable_data_ptr<double>();
  sum[0] = static_cast<double>(count_);
  sum[1] = static_cast<double>(tokens_);
  sum[2] = static_cast<double>(target_tokens_);
  sum[3] = flops_;
  for (std::size_t i = 0; i < further_counts_.size(); ++i) sum[4 + i] = static_cast<double>(further_counts_[i]);
  experiment_.ranks->begin_all_reduce(sums, "counts")->wait();
  count_ = std::llround(sum[0]);
  tokens_ = std::llround(sum[1]);
  target_tokens_ = std::llround(sum[2]);
  flops_ = sum[3];
  for (std::size_t i = 0; i < further_counts_.size(); ++i) further_counts_[i] = std::llround(sum[4 + i]);
}

// One weight for the sum of all means leaves to each of them the ratio of its count to the first one's.
void AccumulationWindow::set_ratios() {
  const bool of_window = options_.mean == WindowMean::kElements;
  for (MicroBatch& micro : mine_) {
    const auto count = static_cast<double>(of_window ? count_ : micro.count);
    const at::Tensor ratios_K = at::empty({static_cast<std::int64_t>(further_counts_.size())}, at::kFloat);
    auto* ratio = ratios_K.mutable_data_ptr<float>();
    for (const std::int64_t further : of_window ? further_counts_ : micro.further_counts) {
      *ratio++ = static_cast<float>(count / static_cast<double>(std::max<std::int64_t>(1, further)));
    }
    micro.tensors.set(components::loss::kCountRatios, ratios_K);
  }
}

double AccumulationWindow::weight_of(const MicroBatch& micro) const {
  const auto whole = [](std::int64_t n) { return static_cast<double>(n > 0 ? n : 1); };
  switch (options_.mean) {
    case WindowMean::kElements: return 1.0 / whole(count_);
    case WindowMean::kSamples: return static_cast<double>(micro.samples) / (whole(micro.count) * whole(samples_));
    case WindowMean::kMicroBatches: return 1.0 / (whole(micro.count) * static_cast<double>(full_passes_));
  }
  return 0.0;
}

// Accelerate divides by the number of steps even if the window is short.
double AccumulationWindow::loss_factor() const {
  if (options_.mean != WindowMean::kMicroBatches) return 1.0;
  return static_cast<double>(full_passes_) / static_cast<double>(passes());
}

std::int64_t AccumulationWindow::busiest_batches() const {
  const std::int64_t processes = options_.schedule.num_processes;
  return (recipe_batches_ + processes - 1) / processes;
}

std::int64_t AccumulationWindow::busiest_passes() const {
  std::map<int, std::int64_t> passes;
  std::int64_t most = 0;
  for (const int owner : owners_) most = std::max(most, ++passes[owner]);
  return most;
}

void AccumulationWindow::set_estimate(double sum) {
  const double mean = sum / static_cast<double>(std::max<std::int64_t>(1, samples_));
  for (MicroBatch& micro : mine_) {
    micro.tensors.set(components::loss::kEstimate, at::full({micro.samples}, mean, at::kFloat));
  }
}

void AccumulationWindow::set_reference(std::size_t micro, const at::Tensor& figures_B2) {
  components::TensorMap& tensors = mine_.at(micro).tensors;
  tensors.set(components::kReferenceChosen, figures_B2.select(1, 0).contiguous());
  tensors.set(components::kReferenceRejected, figures_B2.select(1, 1).contiguous());
}

// Frees all but the last batch, which the next window reuses, to make room for the optimizer.
void AccumulationWindow::release() {
  for (MicroBatch& micro : mine_) {
    if (&micro != &mine_.back()) micro.tensors.clear();
  }
}

std::vector<std::int64_t> AccumulationWindow::samples_of(int rank, const std::vector<std::int64_t>& all) const {
  std::vector<std::int64_t> theirs;
  auto begin = all.begin();
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const auto end = begin + pieces_[i];
    if (owners_[i] == rank) theirs.insert(theirs.end(), begin, end);
    begin = end;
  }
  return theirs;
}

}  // namespace runner::train
