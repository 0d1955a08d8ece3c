#include "runner/train/strategy/rank_gradients.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "components/tensor/tensors.h"
#include "runner/artifact/io/checksum.h"
#include "runner/core/error.h"
#include "runner/distributed/gradient_buckets.h"
#include "runner/distributed/process_group.h"
#include "runner/distributed/streaming_reducer.h"
#include "runner/train/strategy/rank_differences.h"

namespace runner::train {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<components::NamedTensor>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

}  // namespace

RankGradients::RankGradients(distributed::ProcessGroup& ranks, const std::vector<components::NamedTensor>& parameters,
                             const DdpOptions& options, std::size_t notes, Use use)
    : ranks_(ranks),
      parameters_(parameters),
      options_(options),
      comm_hook_(distributed::make_comm_hook(ranks, options.comm_hook)) {
  if (options.local_steps > 0) return;
  const auto tensors = tensors_of(parameters);
  if (use == Use::kInPass) {
    reducer_ = std::make_unique<distributed::StreamingReducer>(*comm_hook_, tensors, options.bucket_bytes);
  } else if (use == Use::kAfterPasses) {
    buckets_ = std::make_unique<distributed::GradientBuckets>(
        ranks, *comm_hook_, tensors, distributed::GradientBuckets::Options{options.bucket_bytes, notes});
  }
}

RankGradients::~RankGradients() = default;

double RankGradients::weight() const {
  return options_.local_steps > 0 || comm_hook_->averages() ? static_cast<double>(ranks_.size()) : 1.0;
}

void RankGradients::begin_pass(bool last) {
  if (buckets_ != nullptr && (last || options_.sync_each_batch)) begin_exchange();
}

void RankGradients::end_pass(bool last) {
  if (buckets_ != nullptr && options_.sync_each_batch && !last) end_exchange();
}

void RankGradients::begin_exchange() {
  buckets_->begin();
  is_open_ = true;
}

void RankGradients::end_exchange() {
  buckets_->end_pass();
  is_open_ = false;
  ++exchanges_;
}

std::vector<std::vector<double>> RankGradients::finish(std::int64_t most, std::span<const double> notes) {
  if (buckets_ == nullptr) return exchange_notes(notes);
  if (!is_open_) begin_exchange();
  while (options_.sync_each_batch && exchanges_ + 1 < most) {  // all ranks make as many exchanges as the busiest one
    end_exchange();
    begin_exchange();
  }
  is_open_ = false;
  exchanges_ = 0;
  return buckets_->finish(notes);
}

void RankGradients::check() {
  std::vector<bool> used;
  for (const auto& parameter : parameters_) used.push_back(parameter.tensor.grad().defined());
  check_used(std::move(used));
  if (options_.check_reduction) check_reduction();
}

std::vector<std::vector<double>> RankGradients::exchange_notes(std::span<const double> notes) const {
  const auto size = static_cast<std::int64_t>(notes.size());
  const at::Tensor all = at::zeros({ranks_.size(), size}, at::kDouble);  // all other ranks contribute zeros
  std::copy(notes.begin(), notes.end(), all.mutable_data_ptr<double>() + ranks_.rank() * size);
  ranks_.begin_all_reduce(all, "notes")->wait();
  std::vector<std::vector<double>> by_rank;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const double* row = all.const_data_ptr<double>() + rank * size;
    by_rank.emplace_back(row, row + size);
  }
  return by_rank;
}

void RankGradients::check_used(std::vector<bool> used) {
  if (options_.find_unused_parameters && !options_.static_graph) return;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const std::string name = "parameter " + parameters_[i].name;
    if (!options_.find_unused_parameters && !used[i] && parameters_[i].tensor.requires_grad()) {
      throw core::RunError(name + " got no gradient, and ddp.find_unused_parameters is false",
                           "set it to true to leave such a parameter unchanged");
    }
    if (!options_.static_graph || used_.empty() || used[i] == used_[i]) continue;
    throw core::RunError(name + (used[i] ? " got a gradient" : " got no gradient") +
                             ", unlike in the first step, and ddp.static_graph is true",
                         "set it to false if the parameters in use change between steps");
  }
  if (used_.empty()) used_ = std::move(used);
}

void RankGradients::check_reduction() const {
  artifact::Checksum checksum;
  for (const auto& parameter : parameters_) {
    if (!parameter.tensor.grad().defined()) continue;
    const at::Tensor values = parameter.tensor.grad().cpu().contiguous();
    checksum.update(values.const_data_ptr(), static_cast<std::int64_t>(values.nbytes()));
  }
  check_ranks_agree(ranks_, {{"the gradients after an exchange", checksum.text()}}, "gradients to compare",
                    "the network or the memory of one of the machines is faulty");
}

}  // namespace runner::train
