#include "runner/train/strategy/sharded_parameters.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "components/model/model.h"
#include "components/ops/kernel_policy.h"
#include "generated/section/parallelism.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/precision.h"

namespace runner::train {
namespace {

constexpr std::int64_t kSettlingSteps = 4;
constexpr std::int64_t kManyRowBytes = 128 << 20;  ///< whose holder would rather have memory than the last 5 % of speed

Prefetch prefetch(const sections::parallelism::Config& parallelism) {
  using sections::parallelism::BackwardPrefetch;
  const auto units = static_cast<std::size_t>(parallelism.prefetch_units);
  const BackwardPrefetch backward = parallelism.backward_prefetch;
  return {parallelism.forward_prefetch ? units : 0, backward != BackwardPrefetch::kNone ? units : 0,
          backward == BackwardPrefetch::kAfter};
}

std::int64_t sum_of_largest(std::vector<std::int64_t> bytes, std::size_t count) {
  std::sort(bytes.begin(), bytes.end(), std::greater<>());
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(std::min(count, bytes.size()));
  return std::accumulate(bytes.begin(), end, std::int64_t{0});
}

}  // namespace

ShardedParameters::ShardedParameters(const Experiment& experiment)
    : ShardedGradients(experiment),
      model_(*experiment.model),
      autocast_(autocast_of_blocks(experiment.recipe, *experiment.model)),
      device_(experiment.device),
      unit_sizes_(unit_sizes(experiment.recipe)),
      frees_after_forward_(experiment.recipe.parallelism->reshard_after_forward),
      prefetch_(prefetch(*experiment.recipe.parallelism)) {
  unit_sizes_.replicated = experiment.replicated;
  if (experiment.rows == nullptr) return;
  for (const components::NamedTensor& one : *experiment.rows) begins_as_.emplace(one.name, one.tensor);
}

components::NamedTensors ShardedParameters::make_shards() {
  if (row_bytes() >= kManyRowBytes) core::set_huge_pages(false);
  make_units();
  list_exchanges();
  is_held_ = rows_are_old_ = begins_as_.empty();
  begins_as_.clear();
  for (UnitWeights& unit : units_) {
    if (!is_held_ && unit.parameters().empty()) unit.free();  // all of it is replicated
  }
  components::NamedTensors shards(wholes().size());
  for (const UnitWeights& unit : units_) {
    for (std::size_t i = 0; i < unit.parameters().size(); ++i) {
      const UnitWeights::Parameter& parameter = unit.parameters()[i];
      if (!parameter.whole.tensor.requires_grad()) continue;
      at::Tensor shard = unit.shards()[i];
      shards[parameter.position] = {parameter.whole.name, shard.set_requires_grad(true)};
    }
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!place(i).replicated) continue;
    at::Tensor all = shard_of(wholes()[i].tensor.detach(), place(i));
    shards[i] = {wholes()[i].name, all.set_requires_grad(true)};
  }
  return shards;
}

at::Tensor ShardedParameters::rows_it_begins_as(const std::string& parameter) const {
  const auto found = begins_as_.find(parameter);
  return found != begins_as_.end() ? found->second : at::Tensor();
}

/// All that stays whole is the first unit.
void ShardedParameters::make_units() {
  blocks_ = units_of(model_, unit_sizes_);
  const std::map<std::string, c10::ScalarType> low = lowered_weights(model_, autocast_, device_);
  std::map<const c10::TensorImpl*, std::size_t> positions;  // of trained parameters
  for (const auto& trained : wholes()) {
    positions.emplace(trained.tensor.unsafeGetTensorImpl(), positions.size());
  }
  std::vector<std::vector<UnitWeights::Parameter>> parameters(blocks_.first_block.size());
  std::vector<RowGradients::Parameter> replicated;
  kept_whole_.clear();
  trains_replicated_.assign(parameters.size(), false);
  for (std::size_t i = 0; i < blocks_.of_block.size(); ++i) {
    for (const components::NamedTensor& parameter : model_.blocks()[i]->parameters()) {
      const auto position = positions.find(parameter.tensor.unsafeGetTensorImpl());
      if (is_replicated(parameter.name)) {
        kept_whole_.push_back(parameter);
        if (position == positions.end()) continue;
        trains_replicated_[*blocks_.of_block[i]] = true;
        replicated.push_back({parameter.tensor, position->second, parameter.tensor.scalar_type(), {}, true});
        continue;
      }
      const auto found = low.find(parameter.name);
      parameters[*blocks_.of_block[i]].push_back({parameter, position != positions.end() ? position->second : 0,
                                                  found != low.end() ? std::make_optional(found->second) : std::nullopt,
                                                  rows_it_begins_as(parameter.name)});
    }
  }
  units_.clear();
  for (auto& of_unit : parameters) units_.emplace_back(std::move(of_unit), place(), memory_);
  replicated_gradients_ = RowGradients(std::move(replicated), place());
}

/// Within a pass, beyond the blocks of the unit.
bool ShardedParameters::stays_whole(std::size_t unit) const {
  // The last unit's backward pass follows its forward pass.
  if (unit == 0 || is_forward_alone_) return unit == 0;
  return unit >= lowest_ && (!frees_after_forward_ || unit + 1 == units_.size());
}

std::size_t ShardedParameters::ahead_of(std::size_t unit) const {
  return unit > lowest_ + prefetch_.backward ? unit - prefetch_.backward : lowest_;
}

// A unit is gathered while one before it runs, in both directions, where some are gathered ahead.
void ShardedParameters::list_exchanges() {
  const auto add = [this](Exchange::Kind kind, std::size_t unit) {
    exchanges_.push_back({kind, unit});
    return exchanges_.size() - 1;
  };
  exchanges_.clear();
  places_.assign(units_.size(), {});
  for (std::size_t unit = 0; unit < units_.size(); ++unit) places_[unit].forward = add(Exchange::Kind::kGather, unit);
  // Below the first trained parameter there is no backward pass.
  lowest_ = 1;
  const bool all = trains(0);
  while (!all && lowest_ < units_.size() && !trains(lowest_)) ++lowest_;
  std::size_t gathered = units_.size();  // this one and those above it, in the backward pass
  const auto gather_to = [&](std::size_t unit) {
    while (gathered > unit) {
      if (!stays_whole(--gathered)) places_[gathered].backward = add(Exchange::Kind::kGather, gathered);
    }
  };
  const auto reduce = [&](std::size_t unit) {
    if (units_[unit].trains()) places_[unit].reduce = add(Exchange::Kind::kReduce, unit);
  };
  for (std::size_t unit = units_.size(); unit-- > lowest_;) {
    gather_to(prefetch_.after ? unit : ahead_of(unit));
    reduce(unit);
    if (prefetch_.after) gather_to(ahead_of(unit));
  }
  reduce(0);
  if (!replicated_gradients_.empty()) add(Exchange::Kind::kReduceReplicated, 0);
}

void ShardedParameters::begin(const StrategyInputs& inputs) {
  ShardedGradients::begin(inputs);
  components::set_keeps_low_weights(false);
  agree_on_types();
}

/// What travels in passes.
void ShardedParameters::agree_on_types() {
  if (std::exchange(types_agree_, true) || all_multiply_bf16(device_)) return;
  for (UnitWeights& unit : units_) unit.keep_types();
}

void ShardedParameters::end() {
  components::set_keeps_low_weights(true);
  core::set_huge_pages(true);
  ShardedGradients::end();
}

void ShardedParameters::begin_step(const StepPlan& plan) {
  ShardedGradients::begin_step(plan);
  kept_.assign(wholes().size(), {});
  take_old_rows();
  if (is_held_ || first_holds_) free_units();
  // Each of the first steps finds its memory elsewhere, as the optimizer's state was made where there was room.
  if (++steps_ <= kSettlingSteps) core::return_freed_memory();
}

/// Of weights that were drawn or loaded whole.
void ShardedParameters::take_old_rows() {
  if (!std::exchange(rows_are_old_, false)) return;
  for (UnitWeights& unit : units_) unit.take_rows();
}

void ShardedParameters::before_forward(const Pass& pass) {
  ShardedGradients::before_forward(pass);
  open_exchange();
  before_unit_forward(0);
}

void ShardedParameters::before_backward(const Pass&) { in_backward_ = true; }
void ShardedParameters::after_backward(const Pass&) { close_exchange(); }

void ShardedParameters::begin_exchange() {
  next_ = 0;
  in_pass_ = true;
  in_backward_ = false;
  reduces_ = syncs_each_pass() || is_last_exchange();
  reducing_ = nullptr;
}

void ShardedParameters::before_unit_forward(std::size_t block) {
  const std::optional<std::size_t> unit = blocks_.of_block[block];
  if (!unit || !in_pass_) return;
  if (!in_backward_) {
    const std::size_t ahead = std::min(*unit + prefetch_.forward, units_.size() - 1);
    reach(places_[ahead].forward);
  } else {
    reach(places_[*unit].backward);  // what is recomputed
  }
  units_[*unit].end_gather();
}

void ShardedParameters::after_unit_forward(std::size_t block) {
  const std::optional<std::size_t> unit = blocks_.of_block[block];
  if (!unit || !in_pass_ || in_backward_ || block != blocks_.last_block[*unit] || stays_whole(*unit)) return;
  units_[*unit].free();
}

void ShardedParameters::before_unit_backward(std::size_t block) {
  const std::optional<std::size_t> unit = blocks_.of_block[block];
  if (!unit || !in_pass_ || *unit == 0 || *unit < lowest_) return;
  reach(places_[*unit].backward);
  if (!prefetch_.after) reach(places_[ahead_of(*unit)].backward);
  units_[*unit].end_gather();
}

void ShardedParameters::after_unit_backward(std::size_t block) {
  const std::optional<std::size_t> unit = blocks_.of_block[block];
  if (!unit || !in_pass_ || *unit == 0 || block != blocks_.first_block[*unit]) return;
  reach(places_[*unit].reduce);
  if (!units_[*unit].trains()) units_[*unit].free();
  if (prefetch_.after && *unit >= lowest_) reach(places_[ahead_of(*unit)].backward);
}

void ShardedParameters::reach(std::optional<std::size_t> exchange) {
  while (exchange && next_ <= *exchange) {
    const auto [kind, unit] = exchanges_[next_++];
    if (kind == Exchange::Kind::kGather) {
      units_[unit].begin_gather(*copy(), UnitWeights::Form::kPass);
      continue;
    }
    finish_reduce();
    if (kind == Exchange::Kind::kReduceReplicated) {
      if (reduces_) begin_reduce(replicated_gradients_, nullptr);
      continue;
    }
    // Its backward pass is over. What the weights had takes what the others send.
    units_[unit].drop_gather();
    units_[unit].free();
    if (!reduces_) {
      keep_gradients(units_[unit]);
      continue;
    }
    give_gradients(units_[unit]);
    begin_reduce(units_[unit].gradients(), &memory_);
  }
}

void ShardedParameters::begin_reduce(RowGradients& gradients, WeightMemory* memory) {
  gradients.begin(*copy(), memory);
  reducing_ = &gradients;
}

/// Those of a smaller type than float32 are added up beside their parameters.
void ShardedParameters::keep_gradients(const UnitWeights& unit) {
  const at::NoGradGuard no_grad;
  for (const UnitWeights::Parameter& parameter : unit.parameters()) {
    at::Tensor& gradient = parameter.whole.tensor.mutable_grad();
    if (!parameter.low || !gradient.defined()) continue;
    at::Tensor& sum = kept_[parameter.position];
    sum = sum.defined() ? sum.add_(gradient) : gradient.to(at::kFloat);
    gradient.reset();
  }
}

/// With what was kept of earlier passes.
void ShardedParameters::give_gradients(const UnitWeights& unit) {
  const at::NoGradGuard no_grad;
  for (const UnitWeights::Parameter& parameter : unit.parameters()) {
    if (!parameter.low || !parameter.whole.tensor.requires_grad()) continue;
    at::Tensor sum = std::exchange(kept_[parameter.position], {});
    if (!sum.defined()) continue;
    at::Tensor& gradient = parameter.whole.tensor.mutable_grad();
    if (gradient.defined()) sum.add_(gradient);
    gradient = sum;
  }
}

void ShardedParameters::finish_reduce() {
  if (reducing_ == nullptr) return;
  std::exchange(reducing_, nullptr)->end(others(), receive());
}

// Also of a pass that failed, and of one that this process has no samples for.
void ShardedParameters::end_exchange() {
  exchange_up_to(exchanges_.size());
  finish_reduce();
  end_pass();
}

void ShardedParameters::exchange_up_to(std::size_t end) {
  while (next_ < end) {
    const auto [kind, unit] = exchanges_[next_];
    reach(next_);
    if (kind == Exchange::Kind::kGather) units_[unit].drop_gather();
  }
}

void ShardedParameters::end_pass() {
  for (UnitWeights& unit : units_) {
    unit.drop_gather();
    unit.free();
  }
  in_pass_ = false;
}

// The rows have moved, and what is made of a parameter knows it by its version.
void ShardedParameters::share_rows() {
  for (const UnitWeights& unit : units_) {
    for (const auto& parameter : unit.parameters()) parameter.whole.tensor.unsafeGetTensorImpl()->bump_version();
  }
}

void ShardedParameters::free_units() {
  for (UnitWeights& unit : units_) unit.free();
  memory_.clear();
  core::return_freed_memory();
  is_held_ = first_holds_ = false;
}

void ShardedParameters::hold_weights() {
  if (is_held_) return;
  RECORD_USER_SCOPE("gather weights");
  if (first_holds_) free_units();
  for (UnitWeights& unit : units_) {
    unit.begin_gather(*copy(), UnitWeights::Form::kExact);
    unit.end_gather();
  }
  is_held_ = true;
}

void ShardedParameters::begin_forward() {
  if (is_held_) return;
  agree_on_types();  // a pass may come before begin()
  if (first_holds_) free_units();
  begin_exchange();
  is_forward_alone_ = true;
  before_unit_forward(0);
}

void ShardedParameters::end_forward() {
  if (!is_forward_alone_) return;
  exchange_up_to(units_.size());
  end_pass();
  is_forward_alone_ = false;
}

std::vector<components::TensorRows> ShardedParameters::all_rows(bool to_save) const {
  std::vector<components::TensorRows> rows;
  const ShardPlace all{place().index, place().count, {}, true, place().block};
  for (const components::NamedTensor& whole : kept_whole_) {
    if (to_save && !all.counts()) continue;
    rows.push_back({whole.name, shard_of(whole.tensor.detach(), all), place_of(whole.tensor, all)});
  }
  for (const UnitWeights& unit : units_) {
    for (std::size_t i = 0; i < unit.parameters().size(); ++i) {
      const components::NamedTensor& whole = unit.parameters()[i].whole;
      rows.push_back({whole.name, unit.shards()[i].detach(), place_of(whole.tensor, place())});
    }
  }
  return rows;
}

std::pair<UnitWeights*, std::size_t> ShardedParameters::find(const std::string& name) {
  if (by_name_.empty()) {
    for (UnitWeights& unit : units_) {
      for (std::size_t i = 0; i < unit.parameters().size(); ++i) by_name_[unit.parameters()[i].whole.name] = {&unit, i};
    }
  }
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? found->second : std::pair<UnitWeights*, std::size_t>(nullptr, 0);
}

void ShardedParameters::open_weight(const std::string& name) {
  if (is_held_) return;
  if (const auto [unit, i] = find(name); unit != nullptr) unit->open(i);  // else a buffer
}

void ShardedParameters::close_weight(const std::string& name) {
  if (is_held_) return;
  if (const auto [unit, i] = find(name); unit != nullptr) unit->close(i);
}

void ShardedParameters::fill_in_parts(const std::function<void()>& fill) {
  if (is_held_) return fill();
  for (UnitWeights& unit : units_) {
    unit.begin_gather(*copy(), UnitWeights::Form::kExact);
    unit.end_gather();
    fill();
    unit.take_rows();
    unit.free();
  }
}

std::vector<components::TensorRows> ShardedParameters::saved_rows() {
  take_old_rows();
  return is_in_first_copy() ? all_rows(true) : std::vector<components::TensorRows>();
}

std::vector<components::TensorRows> ShardedParameters::rows_to_load() {
  free_units();
  rows_are_old_ = false;
  return all_rows(false);
}

// To the first process alone.
void ShardedParameters::gather_state() {
  ShardedGradients::gather_state();
  if (is_held_ || first_holds_ || !is_in_first_copy()) return;
  for (UnitWeights& unit : units_) unit.gather_on_first(*copy());
  first_holds_ = true;
}

void ShardedParameters::before_weights_loaded() {
  for (UnitWeights& unit : units_) unit.make_room();
  is_held_ = rows_are_old_ = true;
  first_holds_ = false;
}

// What is whole is made of other rows.
void ShardedParameters::on_tensors_written() {
  were_held_ = is_held_;
  if (is_held_ || first_holds_) free_units();
  ShardedParameters::share_rows();
}

void ShardedParameters::refresh_weights() {
  if (std::exchange(were_held_, false)) hold_weights();
}

void ShardedParameters::on_weights_loaded() {
  if (is_held_) {
    rows_are_old_ = true;
  } else {
    ShardedParameters::share_rows();  // they are loaded themselves
  }
}

std::int64_t ShardedParameters::held_gradient_bytes(const at::Tensor& parameter) const {
  // What is kept from pass to pass is float32.
  if (keeps_gradients()) return parameter.numel() * static_cast<std::int64_t>(sizeof(float));
  return ShardedGradients::held_gradient_bytes(parameter);
}

void ShardedParameters::set_types_of_pass(bool of_pass) {
  for (UnitWeights& unit : units_) unit.set_types(of_pass ? UnitWeights::Form::kPass : UnitWeights::Form::kExact);
}

/// Of a unit's gradients on their way. What travels alone arrives in memory that the weights had. Of the others both
/// ends are there: as many rows for each process as the first one has, and what says that there is a gradient.
std::int64_t ShardedParameters::sent_bytes(const UnitWeights& unit) const {
  const auto number = static_cast<std::int64_t>(sizeof(float));
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < unit.parameters().size(); ++i) {
    const at::Tensor& parameter = unit.parameters()[i].whole.tensor;
    if (!parameter.requires_grad()) continue;
    const std::int64_t rows = count_of(shard_sizes(parameter, place().of(0)));
    bytes += travels_alone(parameter, place())
                 ? parameter.numel() * static_cast<std::int64_t>(c10::elementSize(unit.type_in_pass(i)))
                 : (rows + 1) * number * place().count * 2;
  }
  return bytes;
}

std::optional<HeldBytes> ShardedParameters::held_bytes() const {
  HeldBytes held;
  std::vector<std::int64_t> wholes, packed;  // of the units that are freed; what does not travel alone of them
  std::int64_t largest_sent = 0;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    std::int64_t whole = 0, together = 0;
    for (std::size_t j = 0; j < units_[i].parameters().size(); ++j) {
      const at::Tensor& parameter = units_[i].parameters()[j].whole.tensor;
      const auto element = static_cast<std::int64_t>(c10::elementSize(units_[i].type_in_pass(j)));
      held.weights += static_cast<std::int64_t>(units_[i].shards()[j].nbytes());
      whole += parameter.numel() * element;
      if (!travels_alone(parameter, place()))
        together += place().count * count_of(shard_sizes(parameter, place().of(0))) * element;
    }
    if (i == 0) {
      held.weights += whole;
    } else {
      wholes.push_back(whole);
      packed.push_back(together);
      largest_sent = std::max(largest_sent, sent_bytes(units_[i]));
    }
  }
  // The unit that runs, and those ahead of it. Behind its backward pass it is no longer there.
  const std::size_t backward = prefetch_.after ? std::max<std::size_t>(prefetch_.backward, 1) : prefetch_.backward + 1;
  const std::size_t most = std::max(prefetch_.forward + 1, backward);
  held.weights += sum_of_largest(wholes, frees_after_forward_ ? most : wholes.size());
  // The weights of one more unit, whose memory has what the others send, or packed ones that arrive; and the gradients
  // of a unit while the backward pass of the next one runs. Those of the first unit go when all others are done.
  const std::int64_t arriving = std::max(sum_of_largest(wholes, 1), sum_of_largest(packed, most - 1));
  held.exchange = arriving + largest_sent;
  held.last = arriving + sent_bytes(units_.front());
  std::int64_t replicated = 0;  // of their gradients, which are sent when those of the units are there
  for (const components::NamedTensor& whole : kept_whole_) {
    held.weights += static_cast<std::int64_t>(whole.tensor.nbytes());
    if (whole.tensor.requires_grad()) replicated += whole.tensor.numel() * static_cast<std::int64_t>(sizeof(float));
  }
  held.last = std::max(held.last, replicated);
  if (keeps_gradients()) held.summed = row_bytes();
  return held;
}

}  // namespace runner::train
