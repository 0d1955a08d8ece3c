#include "runner/train/strategy/unit_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

std::size_t bytes_of(const at::Tensor& parameter) {
  return static_cast<std::size_t>(parameter.numel()) * parameter.element_size();
}

/// The same numbers in a tensor that a graph does not know: writing to it leaves the parameter's version as it is.
at::Tensor unnoticed(const at::Tensor& parameter) { return parameter.variable_data(); }

/// Only a parameter that is all of its storage can lose that.
void own_storage(const at::Tensor& parameter) {
  if (parameter.is_meta()) return;
  if (parameter.storage_offset() == 0 && parameter.is_contiguous() &&
      parameter.storage().nbytes() == bytes_of(parameter))
    return;
  parameter.set_data(parameter.detach().clone(at::MemoryFormat::Contiguous));
}

}  // namespace

void WeightMemory::give(const at::Tensor& parameter) {
  const std::size_t bytes = bytes_of(parameter);
  const c10::Storage& storage = parameter.storage();
  if (parameter.is_meta() || storage.nbytes() == bytes) return;
  std::vector<c10::DataPtr>& ready = free_[bytes];
  if (ready.empty()) {
    const at::Tensor fresh = at::empty(parameter.sizes(), parameter.options().requires_grad(false));
    ready.push_back(fresh.storage().set_data_ptr(c10::DataPtr(nullptr, parameter.device())));
  }
  storage.set_data_ptr_noswap(std::move(ready.back()));
  ready.pop_back();
  storage.set_nbytes(bytes);
}

void WeightMemory::take(const at::Tensor& parameter) {
  const std::size_t bytes = bytes_of(parameter);
  const c10::Storage& storage = parameter.storage();
  if (parameter.is_meta() || bytes == 0 || storage.nbytes() != bytes) return;
  free_[bytes].push_back(storage.set_data_ptr(c10::DataPtr(nullptr, parameter.device())));
  storage.set_nbytes(0);
}

struct UnitWeights::Flat {
  std::vector<std::size_t> members;  // among the parameters
  at::Tensor mine;                   // this process's rows of each, one after the other, then what others have more
  at::Tensor all;                    // those of all processes, while they are on their way
  std::unique_ptr<distributed::Pending> pending;
};

struct UnitWeights::Flight {
  at::Tensor in, out;
  std::unique_ptr<distributed::Pending> pending;
};

UnitWeights::UnitWeights(std::vector<Parameter> parameters, const ShardPlace& place, WeightMemory& memory)
    : parameters_(std::move(parameters)), shards_(parameters_.size()), place_(place), memory_(&memory) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& whole = parameters_[i].whole.tensor;
    own_storage(whole);
    trains_ = trains_ || whole.requires_grad();
    const auto same_type = [&](const Flat& flat) {
      return parameters_[flat.members.front()].whole.tensor.scalar_type() == whole.scalar_type();
    };
    auto flat = std::find_if(flats_.begin(), flats_.end(), same_type);
    if (flat == flats_.end()) flat = flats_.insert(flats_.end(), Flat());
    flat->members.push_back(i);
  }
  for (Flat& flat : flats_) {
    std::int64_t most = 0, at = 0;  // the first process has the most rows
    for (const std::size_t i : flat.members)
      most += count_of(shard_sizes(parameters_[i].whole.tensor, {0, place.count}));
    const auto options = parameters_[flat.members.front()].whole.tensor.options().requires_grad(false);
    flat.mine = at::zeros({most}, options);
    for (const std::size_t i : flat.members) {
      const auto sizes = shard_sizes(parameters_[i].whole.tensor, place);
      const std::int64_t count = count_of(sizes);
      shards_[i] = flat.mine.narrow(0, at, count).view(sizes);
      at += count;
    }
  }
  take_rows();
}

UnitWeights::~UnitWeights() = default;
UnitWeights::UnitWeights(UnitWeights&&) noexcept = default;
UnitWeights& UnitWeights::operator=(UnitWeights&&) noexcept = default;

void UnitWeights::take_rows() {
  RUNNER_ASSERT(is_whole_, "rows are taken of what is there");
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    shards_[i].copy_(shard_of(parameters_[i].whole.tensor.detach(), place_));
  }
}

void UnitWeights::free() {
  for (const Parameter& parameter : parameters_) memory_->take(parameter.whole.tensor);
  is_whole_ = false;
}

void UnitWeights::make_room() {
  for (const Parameter& parameter : parameters_) memory_->give(parameter.whole.tensor);
  is_whole_ = true;
}

void UnitWeights::begin_gather(distributed::ProcessGroup& copy) {
  if (is_whole_ || is_gathering_) return;
  for (Flat& flat : flats_) {
    flat.all = at::empty({flat.mine.numel() * place_.count}, flat.mine.options());
    flat.pending = copy.begin_all_gather(flat.all, flat.mine, "the weights");
  }
  is_gathering_ = true;
}

void UnitWeights::end_gather() {
  if (is_whole_) return;
  RUNNER_ASSERT(is_gathering_, "what is waited for was sent");
  make_room();
  for (Flat& flat : flats_) {
    flat.pending->wait();
    flat.pending.reset();
    place_rows(flat);
    flat.all.reset();
  }
  is_gathering_ = false;
}

void UnitWeights::drop_gather() {
  if (!is_gathering_) return;
  for (Flat& flat : flats_) {
    flat.pending->wait();
    flat.pending.reset();
    flat.all.reset();
  }
  is_gathering_ = false;
}

void UnitWeights::place_rows(Flat& flat) const {
  const at::NoGradGuard no_grad;
  for (int rank = 0; rank < place_.count; ++rank) {
    std::int64_t at = rank * flat.mine.numel();
    for (const std::size_t i : flat.members) {
      const at::Tensor rows = shard_of(unnoticed(parameters_[i].whole.tensor), {rank, place_.count});
      rows.copy_(flat.all.narrow(0, at, rows.numel()).view(rows.sizes()));
      at += rows.numel();
    }
  }
}

void UnitWeights::begin_reduce(distributed::ProcessGroup& copy) {
  const at::NoGradGuard no_grad;
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].whole.tensor.requires_grad()) trained.push_back(i);
  }
  const auto flags = static_cast<std::int64_t>(trained.size());
  // To each process its rows of every gradient, and for each of those whether it is there.
  std::vector<std::int64_t> to(static_cast<std::size_t>(place_.count), flags);
  for (int rank = 0; rank < place_.count; ++rank) {
    for (const std::size_t i : trained) {
      to[static_cast<std::size_t>(rank)] += count_of(shard_sizes(parameters_[i].whole.tensor, {rank, place_.count}));
    }
  }
  const std::int64_t own = to[static_cast<std::size_t>(place_.index)];
  std::int64_t total = 0;
  for (const std::int64_t count : to) total += count;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(parameters_[trained.front()].whole.tensor.device());
  flight_ = std::make_unique<Flight>();
  flight_->in = at::empty({total}, options);
  flight_->out = at::empty({own * place_.count}, options);
  std::int64_t at = 0;
  for (int rank = 0; rank < place_.count; ++rank) {
    for (const std::size_t i : trained) {
      const at::Tensor gradient = parameters_[i].whole.tensor.grad();
      const std::int64_t count = count_of(shard_sizes(parameters_[i].whole.tensor, {rank, place_.count}));
      const at::Tensor part = flight_->in.narrow(0, at, count);
      if (gradient.defined()) {
        const at::Tensor rows = shard_of(gradient, {rank, place_.count});
        part.view(rows.sizes()).copy_(rows);
      } else {
        part.zero_();
      }
      at += count;
    }
    for (const std::size_t i : trained) {
      flight_->in.narrow(0, at++, 1).fill_(parameters_[i].whole.tensor.grad().defined() ? 1.0 : 0.0);
    }
  }
  for (const std::size_t i : trained) parameters_[i].whole.tensor.mutable_grad().reset();
  flight_->pending =
      copy.begin_all_to_all(flight_->out, std::vector<std::int64_t>(to.size(), own), flight_->in, to, "the gradients");
}

void UnitWeights::end_reduce(distributed::ProcessGroup* others, const Receive& receive) {
  RUNNER_ASSERT(flight_ != nullptr, "what is waited for was sent");
  const at::NoGradGuard no_grad;
  flight_->pending->wait();
  flight_->in.reset();
  const at::Tensor by_rank = flight_->out.view({place_.count, -1});
  const at::Tensor sum = by_rank.select(0, 0);
  for (int rank = 1; rank < place_.count; ++rank) sum.add_(by_rank.select(0, rank));
  if (others != nullptr) others->begin_all_reduce(sum, "the gradients of the copies")->wait();
  std::int64_t at = 0, flag = sum.numel();
  for (const Parameter& parameter : parameters_) flag -= parameter.whole.tensor.requires_grad() ? 1 : 0;
  const at::Tensor counts = sum.narrow(0, flag, sum.numel() - flag).cpu();
  const float* used = counts.const_data_ptr<float>();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].whole.tensor.requires_grad()) continue;
    const std::int64_t count = shards_[i].numel();
    receive(parameters_[i].position, sum.narrow(0, at, count).view(shards_[i].sizes()), *used++ > 0);
    at += count;
  }
  flight_.reset();
}

}  // namespace runner::train
