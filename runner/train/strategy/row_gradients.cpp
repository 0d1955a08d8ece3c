#include "runner/train/strategy/row_gradients.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"
#include "runner/train/strategy/weight_memory.h"

namespace runner::train {
namespace {

constexpr std::int64_t kAloneElementsMin = 1 << 14;
constexpr std::int64_t kPieceElements = 1 << 16;  ///< that are added up, or narrowed, at a time

/// On the CPU LibTorch widens all of a smaller type before it adds it: in pieces that is a little memory.
void add_to(const at::Tensor& part, const at::Tensor& sum) {
  const std::int64_t piece = part.is_cpu() && part.scalar_type() != sum.scalar_type() ? kPieceElements : sum.numel();
  for (std::int64_t at = 0; at < sum.numel(); at += piece) {
    const std::int64_t count = std::min(piece, sum.numel() - at);
    sum.narrow(0, at, count).add_(part.narrow(0, at, count));
  }
}

/// A gradient in a smaller type, flat. On the CPU it takes the gradient's place, in pieces: a copy would be a large
/// tensor more at the peak of a step.
at::Tensor narrowed(const at::Tensor& gradient, c10::ScalarType type) {
  const at::Tensor flat = gradient.contiguous().view({-1});
  if (type == flat.scalar_type() || !flat.is_cpu()) return flat.to(type);
  const at::Tensor narrow = flat.view(type).narrow(0, 0, flat.numel());
  for (std::int64_t at = 0; at < flat.numel(); at += kPieceElements) {
    const std::int64_t count = std::min(kPieceElements, flat.numel() - at);
    narrow.narrow(0, at, count).copy_(flat.narrow(0, at, count).to(type));
  }
  return narrow;
}

/// Adds up what each process sent, in their order. [processes * N] -> [N], float32
at::Tensor sum_of(const at::Tensor& received, int processes, distributed::ProcessGroup* others) {
  const at::Tensor by_process = received.view({processes, -1});
  const at::Tensor sum = by_process.select(0, 0).to(at::kFloat);  // where it lies, if that is its type
  for (int process = 1; process < processes; ++process) add_to(by_process.select(0, process), sum);
  if (others != nullptr) others->begin_all_reduce(sum, "the gradients of the copies")->wait();
  return sum;
}

}  // namespace

bool travels_alone(const at::Tensor& parameter, const ShardPlace& place) {
  return !place.owner && !place.replicated && parameter.numel() >= kAloneElementsMin &&
         count_of(shard_sizes(parameter, place.of(place.count - 1))) > 0;
}

struct RowGradients::Flight {
  at::Tensor in, out;
  std::unique_ptr<distributed::Pending> pending;
};

RowGradients::RowGradients(std::vector<Parameter> parameters, const ShardPlace& place)
    : parameters_(std::move(parameters)), place_(place) {
  const auto replicated = std::stable_partition(parameters_.begin(), parameters_.end(),
                                                [](const Parameter& parameter) { return !parameter.replicated; });
  const auto packed = std::stable_partition(parameters_.begin(), replicated, [&](const Parameter& parameter) {
    return travels_alone(parameter.whole, place_of(parameter, place.index));
  });
  alone_ = static_cast<std::size_t>(packed - parameters_.begin());
  divided_ = static_cast<std::size_t>(replicated - parameters_.begin());
  const auto small = std::stable_partition(replicated, parameters_.end(), [](const Parameter& parameter) {
    return parameter.whole.numel() >= kAloneElementsMin;
  });
  wholes_ = static_cast<std::size_t>(small - parameters_.begin());
}

RowGradients::RowGradients() = default;
RowGradients::~RowGradients() = default;
RowGradients::RowGradients(RowGradients&&) noexcept = default;
RowGradients& RowGradients::operator=(RowGradients&&) noexcept = default;

std::int64_t RowGradients::elements_of(const Parameter& parameter, int process) const {
  return count_of(shard_sizes(parameter.whole, place_of(parameter, process)));
}

void RowGradients::begin(distributed::ProcessGroup& copy, WeightMemory* memory) {
  const at::NoGradGuard no_grad;
  memory_ = place_.count > 1 ? memory : nullptr;
  RUNNER_ASSERT(flights_.empty(), "gradients are on their way once");
  std::vector<bool> has_gradient;
  for (const Parameter& parameter : parameters_) has_gradient.push_back(parameter.whole.grad().defined());
  for (std::size_t i = 0; i < alone_; ++i) send(parameters_[i], copy);
  send_packed(has_gradient, copy);
  send_replicated(copy);
  for (const Parameter& parameter : parameters_) parameter.whole.mutable_grad().reset();
}

/// To each process its rows, from where they are.
void RowGradients::send(const Parameter& parameter, distributed::ProcessGroup& copy) {
  std::vector<std::int64_t> to;
  for (int process = 0; process < place_.count; ++process) to.push_back(elements_of(parameter, process));
  const at::Tensor& gradient = parameter.whole.grad();
  const auto options = parameter.whole.options().requires_grad(false).dtype(parameter.type);
  Flight flight;
  flight.in = gradient.defined() ? narrowed(gradient, parameter.type) : at::zeros({parameter.whole.numel()}, options);
  parameter.whole.mutable_grad().reset();  // what is sent may be a copy, and what comes needs room
  flight.out = room_for(parameter);
  launch(std::move(flight), to, copy);
}

/// Memory of the size that the whole parameter has where it is gathered; undefined: there is none to lend.
at::Tensor RowGradients::room_for(const Parameter& parameter) const {
  if (memory_ == nullptr) return {};
  const auto options = parameter.whole.options().requires_grad(false).dtype(parameter.type);
  const auto most = static_cast<std::size_t>(elements_of(parameter, 0) * place_.count);
  return memory_->lend(elements_of(parameter, place_.index) * place_.count, most * c10::elementSize(parameter.type),
                       options);
}

/// Large ones in memory of their own, so that what comes back may be kept.
void RowGradients::send_replicated(distributed::ProcessGroup& copy) {
  for (std::size_t first = divided_, end = 0; first < parameters_.size(); first = end) {
    end = first < wholes_ ? first + 1 : parameters_.size();
    std::int64_t total = 0, at = 0;
    for (std::size_t i = first; i < end; ++i) total += parameters_[i].whole.numel();
    Flight flight;
    flight.out = at::zeros({total}, parameters_[first].whole.options().requires_grad(false).dtype(at::kFloat));
    for (std::size_t i = first; i < end; ++i) {
      const at::Tensor &whole = parameters_[i].whole, &gradient = whole.grad();
      if (gradient.defined()) flight.out.narrow(0, at, whole.numel()).view(whole.sizes()).copy_(gradient);
      at += whole.numel();
    }
    flight.pending = copy.begin_all_reduce(flight.out, "the gradients");
    flights_.push_back(std::move(flight));
  }
}

/// Those of the packed parameters in float32, and for each parameter whether this process has a gradient. To each
/// process its rows, one after the other.
void RowGradients::send_packed(const std::vector<bool>& has_gradient, distributed::ProcessGroup& copy) {
  const auto flags = static_cast<std::int64_t>(parameters_.size());
  std::vector<std::int64_t> to(static_cast<std::size_t>(place_.count), flags);
  std::int64_t total = 0;
  for (int process = 0; process < place_.count; ++process) {
    std::int64_t& count = to[static_cast<std::size_t>(process)];
    for (std::size_t i = alone_; i < divided_; ++i) count += elements_of(parameters_[i], process);
    total += count;
  }
  const auto options = parameters_.front().whole.options().requires_grad(false).dtype(at::kFloat);
  Flight flight{at::empty({total}, options), {}, {}};
  std::int64_t at = 0;
  for (int process = 0; process < place_.count; ++process) {
    for (std::size_t i = alone_; i < divided_; ++i) {
      const std::int64_t count = elements_of(parameters_[i], process);
      const at::Tensor part = flight.in.narrow(0, at, count);
      if (const at::Tensor& gradient = parameters_[i].whole.grad(); gradient.defined()) {
        const at::Tensor rows = shard_of(gradient, place_of(parameters_[i], process));
        part.view(rows.sizes()).copy_(rows);
      } else {
        part.zero_();
      }
      at += count;
    }
    for (const bool has : has_gradient) flight.in.narrow(0, at++, 1).fill_(has ? 1.0 : 0.0);
  }
  launch(std::move(flight), to, copy);
}

void RowGradients::launch(Flight flight, const std::vector<std::int64_t>& to, distributed::ProcessGroup& copy) {
  const std::int64_t own = to[static_cast<std::size_t>(place_.index)];
  if (!flight.out.defined()) flight.out = at::empty({own * place_.count}, flight.in.options());
  flight.pending =
      copy.begin_all_to_all(flight.out, std::vector<std::int64_t>(to.size(), own), flight.in, to, "the gradients");
  flights_.push_back(std::move(flight));
}

void RowGradients::end(distributed::ProcessGroup* others, const Receive& receive) {
  RUNNER_ASSERT(!flights_.empty(), "what is waited for was sent");
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    Flight& flight = flights_[i];
    flight.pending->wait();
    flight.pending.reset();  // it holds what was sent
    flight.in.reset();
    sums.push_back(sum_of(flight.out, i > alone_ ? 1 : place_.count, others));  // what is replicated is added up
    if (sums.back().is_alias_of(flight.out)) continue;
    if (memory_ != nullptr) memory_->take(flight.out);
    flight.out.reset();
  }
  const auto flags = static_cast<std::int64_t>(parameters_.size());
  const at::Tensor& packed = sums[alone_];
  const at::Tensor told = packed.narrow(0, packed.numel() - flags, flags).cpu();
  const float* used = told.const_data_ptr<float>();
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (i == wholes_) at = 0;
    const std::vector<std::int64_t> sizes = shard_sizes(parameters_[i].whole, place_of(parameters_[i], place_.index));
    at::Tensor rows;
    if (i < alone_) {
      rows = sums[i];
    } else if (i >= divided_ && i < wholes_) {
      rows = sums[alone_ + 1 + i - divided_];
    } else {
      rows = (i < divided_ ? packed : sums.back()).narrow(0, at, count_of(sizes));
      at += rows.numel();
    }
    receive(parameters_[i].position, rows.view(sizes), used[i] > 0);
  }
  for (std::size_t i = 0; i < alone_; ++i) {
    if (memory_ != nullptr && flights_[i].out.defined()) memory_->take(flights_[i].out);
  }
  flights_.clear();
}

}  // namespace runner::train
