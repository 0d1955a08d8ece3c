#include "runner/train/strategy/rank_exchange.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <string>

#include "components/tensor/random_state.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/stepper_options.h"

namespace runner::train {

namespace {
constexpr std::size_t kOwnNotes = 1;  // whether the rank's memory ran out
}

RankExchange::RankExchange(const StrategyInputs& inputs, RankGradients::Use use)
    : ranks_(*inputs.experiment.ranks),
      gradients_(ranks_, inputs.parameters, inputs.options.ddp, kOwnNotes + inputs.notes, use) {
  const c10::Device& device = inputs.experiment.device;
  if (inputs.options.same_cpu_random) generators_.emplace_back(c10::kCPU);
  if (inputs.options.same_gpu_random && !device.is_cpu()) generators_.push_back(device);
  if (inputs.experiment.model->buffers().empty()) return;
  const auto of = inputs.options.ddp.broadcast_buffers ? BufferSync::Of::kFirst : BufferSync::Of::kAll;
  buffer_sync_ = std::make_unique<BufferSync>(*inputs.experiment.model, ranks_, of);
}

// The generator of the sample order never differs.
void RankExchange::sync_rng_states() {
  if (generators_.empty()) return;
  const std::string mine = components::RandomState::now(generators_).bytes();
  components::RandomState::of(ranks_.from_rank_0(mine, "random numbers of an epoch"), generators_).restore();
}

void RankExchange::begin_step() {
  if (buffer_sync_ != nullptr) buffer_sync_->begin();
}

void RankExchange::before_forward(const Pass& pass) {
  if (buffer_sync_ != nullptr) buffer_sync_->skip_batches(pass.others_before);
}

// Also after a failed pass: the sums are useless then, but no rank is left waiting.
RankNotes RankExchange::finish(const PassesEnd& end) {
  RECORD_USER_SCOPE("exchange");
  std::vector<double> mine = {end.out_of_memory ? 1.0 : 0.0};
  const std::vector<double> more = end.notes();
  mine.insert(mine.end(), more.begin(), more.end());
  const std::int64_t ranks = ranks_.size();
  RankNotes all = gradients_.finish((end.passes + ranks - 1) / ranks, mine);
  const bool fits = std::all_of(all.begin(), all.end(), [](const auto& notes) { return notes[0] == 0.0; });
  if (!fits) share_out_of_memory(ranks_, end.out_of_memory);
  for (std::vector<double>& notes : all) notes.erase(notes.begin(), notes.begin() + kOwnNotes);
  return all;
}

void RankExchange::sync_buffers(std::int64_t others_after) {
  if (buffer_sync_ == nullptr) return;
  buffer_sync_->skip_batches(others_after);
  buffer_sync_->finish();
}

}  // namespace runner::train
