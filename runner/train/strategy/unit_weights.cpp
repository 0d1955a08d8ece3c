#include "runner/train/strategy/unit_weights.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

std::size_t bytes_of(const at::Tensor& parameter) {
  return static_cast<std::size_t>(parameter.numel()) * parameter.element_size();
}

at::TensorOptions options_of(const at::Tensor& parameter) { return parameter.options().requires_grad(false); }

/// The same numbers in a tensor that a graph does not know: writing to it leaves the parameter's version as it is.
at::Tensor unnoticed(const at::Tensor& parameter) { return parameter.variable_data(); }

/// Only a parameter that is all of its storage can lose that.
void own_storage(const at::Tensor& parameter) {
  if (parameter.is_meta() || (parameter.numel() > 0 && parameter.storage().nbytes() == 0)) return;
  const bool is_all = parameter.storage_offset() == 0 && parameter.storage().nbytes() == bytes_of(parameter);
  if (!is_all || !parameter.is_contiguous()) parameter.set_data(parameter.detach().clone(at::MemoryFormat::Contiguous));
}

}  // namespace

struct UnitWeights::Single {
  std::size_t index = 0;  // among the parameters
  at::Tensor mine;        // [elements of the process with the most rows]
  at::Tensor sent;        // those in the type of the gather, while they are on their way
  std::unique_ptr<distributed::Pending> pending;
};

struct UnitWeights::Packed {
  std::vector<std::size_t> members;  // among the parameters
  at::Tensor mine;                   // this process's rows of each, one after the other, then what others have more
  at::Tensor sent, all;              // those and all processes', while they are on their way
  std::unique_ptr<distributed::Pending> pending;
};

UnitWeights::UnitWeights(std::vector<Parameter> parameters, const ShardPlace& place, WeightMemory& memory)
    : parameters_(std::move(parameters)), shards_(parameters_.size()), place_(place), memory_(&memory) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    own_storage(whole(i));
    if (travels_alone(whole(i), place_)) {
      singles_.push_back({i, {}, {}, {}});
      continue;
    }
    const auto same_type = [&](const Packed& packed) {
      const std::size_t first = packed.members.front();
      return whole(first).scalar_type() == whole(i).scalar_type() && parameters_[first].low == parameters_[i].low;
    };
    auto packed = std::find_if(packed_.begin(), packed_.end(), same_type);
    if (packed == packed_.end()) packed = packed_.insert(packed_.end(), Packed());
    packed->members.push_back(i);
  }
  make_shards();
  if (!parameters_.empty() && parameters_.front().rows.defined()) {
    begin_as_rows();
  } else {
    take_rows();
  }
  make_gradients();
}

void UnitWeights::make_gradients() {
  std::vector<RowGradients::Parameter> trained;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (whole(i).requires_grad()) trained.push_back({whole(i), parameters_[i].position, type_in_pass(i)});
  }
  gradients_ = RowGradients(std::move(trained), place_);
}

UnitWeights::~UnitWeights() = default;
UnitWeights::UnitWeights(UnitWeights&&) noexcept = default;
UnitWeights& UnitWeights::operator=(UnitWeights&&) noexcept = default;

std::int64_t UnitWeights::elements_of(std::size_t i, int process) const {
  return count_of(shard_sizes(whole(i), place_.of(process)));
}

c10::ScalarType UnitWeights::type_in_pass(std::size_t i) const {
  return parameters_[i].low.value_or(shards_[i].scalar_type());
}

void UnitWeights::keep_types() {
  for (Parameter& parameter : parameters_) {
    RUNNER_ASSERT(!parameter.low || form_ == Form::kExact, "no pass has begun");
    parameter.low.reset();
  }
  make_gradients();
}

/// Of parameters without memory: their numbers come with a gather.
void UnitWeights::take_form(Form form) {
  if (form == form_) return;
  RUNNER_ASSERT(!is_whole_ && !is_gathering_, "what is there has one type");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].low || whole(i).is_meta()) continue;
    const auto type = form == Form::kPass ? type_in_pass(i) : shards_[i].scalar_type();
    const at::Tensor empty = at::empty({0}, options_of(whole(i)).dtype(type));
    empty.unsafeGetTensorImpl()->set_sizes_contiguous(whole(i).sizes());
    whole(i).set_data(empty);
  }
  form_ = form;
}

void UnitWeights::set_types(Form form) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].low || !whole(i).is_meta()) continue;
    const auto type = form == Form::kPass ? type_in_pass(i) : shards_[i].scalar_type();
    whole(i).set_data(at::empty(whole(i).sizes(), options_of(whole(i)).dtype(type)));
  }
}

/// Rows in the type that the parameter has now.
at::Tensor UnitWeights::sent_of(const at::Tensor& mine, std::size_t i) const { return mine.to(whole(i).scalar_type()); }

// The first process has the most rows.
void UnitWeights::make_shards() {
  const auto part_of = [this](const at::Tensor& mine, std::int64_t at, std::size_t i) {
    return mine.narrow(0, at, elements_of(i, place_.index)).view(shard_sizes(whole(i), place_));
  };
  for (Single& single : singles_) {
    single.mine = at::zeros({elements_of(single.index, 0)}, options_of(whole(single.index)));
    shards_[single.index] = part_of(single.mine, 0, single.index);
  }
  for (Packed& packed : packed_) {
    std::int64_t most = 0, at = 0;
    for (const std::size_t i : packed.members) most += elements_of(i, 0);
    packed.mine = at::zeros({most}, options_of(whole(packed.members.front())));
    for (const std::size_t i : packed.members) {
      shards_[i] = part_of(packed.mine, at, i);
      at += shards_[i].numel();
    }
  }
}

void UnitWeights::begin_as_rows() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    RUNNER_ASSERT(parameters_[i].rows.defined(), "all parameters begin as rows");
    shards_[i].copy_(std::exchange(parameters_[i].rows, {}).view_as(shards_[i]));
  }
  is_whole_ = false;
}

void UnitWeights::open(std::size_t i) {
  RUNNER_ASSERT(!is_whole_ && !is_gathering_, "a parameter that is whole is written to as it is");
  const at::NoGradGuard no_grad;
  take_form(Form::kExact);
  memory_->give(whole(i), bytes_of(whole(i)));
  shard_of(unnoticed(whole(i)), place_).copy_(shards_[i]);
}

void UnitWeights::close(std::size_t i) {
  const at::NoGradGuard no_grad;
  shards_[i].copy_(shard_of(whole(i).detach(), place_));
  memory_->take(whole(i));
  memory_->clear();
}

void UnitWeights::take_rows() {
  RUNNER_ASSERT(is_whole_, "rows are taken of what is there");
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) shards_[i].copy_(shard_of(whole(i).detach(), place_));
}

void UnitWeights::free() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) memory_->take(whole(i));
  is_whole_ = false;
}

void UnitWeights::make_room() {
  if (!is_whole_) take_form(Form::kExact);
  give_room();
}

void UnitWeights::give_room() {
  for (const Single& single : singles_) make_room(single);
  for (const Packed& packed : packed_) {
    for (const std::size_t i : packed.members) memory_->give(whole(i), bytes_of(whole(i)));
  }
  is_whole_ = true;
}

/// For as many rows of each process as the first one has.
void UnitWeights::make_room(const Single& single) {
  const std::size_t most = static_cast<std::size_t>(single.mine.numel()) * whole(single.index).element_size();
  memory_->give(whole(single.index), most * static_cast<std::size_t>(place_.count));
}

void UnitWeights::begin_gather(distributed::ProcessGroup& copy, Form form) {
  if (is_whole_ || is_gathering_) {
    RUNNER_ASSERT(form == form_, "what is there is of the form that is asked for");
    return;
  }
  const at::NoGradGuard no_grad;
  take_form(form);
  for (Single& single : singles_) {
    make_room(single);
    const std::int64_t total = single.mine.numel() * place_.count;
    single.sent = sent_of(single.mine, single.index);
    const at::Tensor all = at::empty({0}, single.sent.options());
    all.set_(whole(single.index).storage(), 0, {total}, {1});
    single.pending = copy.begin_all_gather(all, single.sent, "the weights");
  }
  for (Packed& packed : packed_) {
    packed.sent = sent_of(packed.mine, packed.members.front());
    packed.all = at::empty({packed.sent.numel() * place_.count}, packed.sent.options());
    packed.pending = copy.begin_all_gather(packed.all, packed.sent, "the weights");
  }
  is_gathering_ = true;
}

void UnitWeights::end_gather() {
  if (is_whole_) return;
  RUNNER_ASSERT(is_gathering_, "what is waited for was sent");
  land_singles();
  give_room();
  for (Packed& packed : packed_) {
    land(packed);
    place_rows(packed);
    packed.all.reset();
  }
  is_gathering_ = false;
}

void UnitWeights::drop_gather() {
  if (!is_gathering_) return;
  land_singles();
  for (Packed& packed : packed_) {
    land(packed);
    packed.all.reset();
  }
  is_gathering_ = false;
  free();
}

void UnitWeights::land_singles() {
  for (Single& single : singles_) {
    single.pending->wait();
    single.pending.reset();
    single.sent.reset();
  }
}

void UnitWeights::land(Packed& packed) {
  packed.pending->wait();
  packed.pending.reset();
  packed.sent.reset();
}

void UnitWeights::gather_on_first(distributed::ProcessGroup& copy) {
  const at::NoGradGuard no_grad;
  take_form(Form::kExact);
  if (place_.index == 0) make_room();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (place_.index != 0) {
      if (shards_[i].numel() > 0) copy.send(shards_[i].detach().contiguous(), 0, "the weights");
      continue;
    }
    const at::Tensor all = unnoticed(whole(i));
    shard_of(all, place_).copy_(shards_[i]);
    for (int process = 1; process < place_.count; ++process) {
      const at::Tensor rows = shard_of(all, place_.of(process));  // contiguous, as rows are
      if (rows.numel() > 0) copy.receive(rows, process, "the weights");
    }
  }
}

void UnitWeights::place_rows(const Packed& packed) const {
  const at::NoGradGuard no_grad;
  for (int process = 0; process < place_.count; ++process) {
    std::int64_t at = process * packed.mine.numel();
    for (const std::size_t i : packed.members) {
      const at::Tensor rows = shard_of(unnoticed(whole(i)), place_.of(process));
      rows.copy_(packed.all.narrow(0, at, rows.numel()).view(rows.sizes()));
      at += rows.numel();
    }
  }
}

}  // namespace runner::train
