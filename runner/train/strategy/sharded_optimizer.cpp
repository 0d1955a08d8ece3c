#include "runner/train/strategy/sharded_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <utility>

#include "components/optimizer/optimizer.h"
#include "generated/section/launch.h"
#include "generated/section/parallelism.h"
#include "runner/core/error.h"
#include "runner/distributed/mesh.h"
#include "runner/distributed/process_group.h"
#include "runner/registry/registry.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/strategy/sharded_state.h"

namespace runner::train {
namespace {

constexpr std::int64_t kBucketBytes = 32 << 20;  ///< of weights that are gathered at a time
constexpr std::size_t kInFlight = 2;

/// Of a row; a tensor without dimensions is one.
std::int64_t row_elements(const at::Tensor& whole) {
  return whole.dim() == 0 || whole.size(0) == 0 ? 1 : whole.numel() / whole.size(0);
}

/// `part` of a process's rows of a parameter; it may have fewer.
at::Tensor part_of(const at::Tensor& rows, const Rows& part) {
  const std::int64_t first = std::min(part.first, rows.size(0));
  return rows.narrow(0, first, std::min(part.count, rows.size(0) - first));
}

int copy_count(const resolve::Recipe& recipe) {
  return static_cast<int>(recipe.launch->num_processes) / shard_count(recipe);
}

/// x-update of the recipe's optimizer.
std::string update_of(const resolve::Recipe& recipe) {
  const core::Node* type = recipe.optimizer.find("type");
  const auto& registry = registry::Registry::builtin();
  const registry::Fragment* fragment = type != nullptr ? registry.find("optimizer", type->as_string()) : nullptr;
  return fragment != nullptr ? fragment->update : "";
}

}  // namespace

int shard_count(const resolve::Recipe& recipe) {
  const auto& parallelism = *recipe.parallelism;
  const std::int64_t processes = recipe.launch->num_processes;
  if (!parallelism.shard || processes == 1) return 1;
  return static_cast<int>(parallelism.dp_shard_size.value_or(processes / parallelism.dp_replicate_size.value_or(1)));
}

std::int64_t state_block(const resolve::Recipe& recipe) {
  return update_of(recipe) == "blocks" ? components::optimizer::kStateBlock : 0;
}

/// Parameters of one type that travel together, and parts of large ones.
struct ShardedOptimizer::Bucket {
  struct Part {
    std::size_t parameter;  ///< its position
    Rows of_each;           ///< of the rows that each process has of it
  };
  std::vector<Part> parts;
  std::int64_t elements = 0;  ///< of the process with the most
};

ShardedOptimizer::ShardedOptimizer(const Experiment& experiment)
    : ranks_(experiment.ranks), replicated_(experiment.replicated) {
  const int shards = shard_count(experiment.recipe), copies = copy_count(experiment.recipe);
  place_ = {experiment.rank() % shards, shards, {}, false, state_block(experiment.recipe)};
  deals_ = update_of(experiment.recipe) == "whole-tensor";
  if (ranks_ == nullptr) return;
  copy_ = ranks_.get();
  if (copies == 1) return;
  mesh_ = std::make_unique<distributed::Mesh>(
      *ranks_, std::vector<distributed::MeshAxis>{{"dp_replicate", copies}, {"dp_shard", shards}});
  copy_ = mesh_->along("dp_shard");
}

ShardedOptimizer::~ShardedOptimizer() = default;

void ShardedOptimizer::attach(const std::vector<Unit>& units) {
  Ddp::attach(units);
  wholes_ = GradientStrategy::optimizer_tensors();
  places_.assign(wholes_.size(), place_);
  positions_.clear();
  components::NamedTensors divided;
  for (std::size_t i = 0; i < wholes_.size(); ++i) {
    positions_.emplace(wholes_[i].tensor.unsafeGetTensorImpl(), i);
    places_[i].replicated = is_replicated(wholes_[i].name);
    if (!places_[i].replicated) divided.push_back(wholes_[i]);
  }
  if (deals_) {
    const std::vector<int> owners = deal(divided, place_.count);
    auto owner = owners.begin();
    for (ShardPlace& place : places_) {
      if (!place.replicated) place.owner = *owner++;
    }
  }
  shards_ = make_shards();
}

/// Those that lie in the parameters.
components::NamedTensors ShardedOptimizer::make_shards() {
  components::NamedTensors shards;
  for (std::size_t i = 0; i < wholes_.size(); ++i) {
    at::Tensor shard = shard_of(wholes_[i].tensor.detach(), places_[i]);
    shard.set_requires_grad(true);
    shards.push_back({wholes_[i].name, shard});
  }
  make_buckets();
  return shards;
}

/// Dealt parameters by size, so that those of a bucket are of many owners.
void ShardedOptimizer::make_buckets() {
  buckets_.clear();
  large_.clear();
  std::vector<std::size_t> order;  // of those that others get from this process
  for (std::size_t i = 0; i < wholes_.size(); ++i) {
    if (!places_[i].replicated) order.push_back(i);
  }
  const auto size = [this](std::size_t i) { return wholes_[i].tensor.numel(); };
  if (deals_) std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return size(a) > size(b); });
  std::vector<std::int64_t> elements;  // of each process in the last bucket
  const auto append = [&](const Bucket::Part& part, std::int64_t most_elements) {
    const at::Tensor& whole = wholes_[part.parameter].tensor;
    const auto sum = [&] {
      std::vector<std::int64_t> sums = elements;
      for (int process = 0; process < place_.count; ++process) {
        const std::vector<std::int64_t> sizes = shard_sizes(whole, places_[part.parameter].of(process));
        const std::int64_t rows = std::clamp<std::int64_t>(sizes.front() - part.of_each.first, 0, part.of_each.count);
        sums[static_cast<std::size_t>(process)] += rows * row_elements(whole);
      }
      return sums;
    };
    const auto most = [](const std::vector<std::int64_t>& sums) { return *std::max_element(sums.begin(), sums.end()); };
    const bool joins = !buckets_.empty() &&
                       whole.scalar_type() == wholes_[buckets_.back().parts.back().parameter].tensor.scalar_type() &&
                       most(sum()) <= most_elements;
    if (!joins) {
      buckets_.emplace_back();
      elements.assign(static_cast<std::size_t>(place_.count), 0);
    }
    elements = sum();
    buckets_.back().parts.push_back(part);
    buckets_.back().elements = most(elements);
  };
  for (const std::size_t i : order) {
    const at::Tensor& whole = wholes_[i].tensor;
    const std::int64_t rows = shard_sizes(whole, places_[i].of(places_[i].owner.value_or(0))).front();
    const std::int64_t most = kBucketBytes / place_.count / static_cast<std::int64_t>(whole.element_size());
    if (deals_ && whole.numel() > most) {
      large_.push_back(i);
      continue;
    }
    const std::int64_t each = std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, row_elements(whole)));
    for (std::int64_t first = 0; first < rows; first += each) append({i, {first, std::min(each, rows - first)}}, most);
  }
}

const ShardPlace& ShardedOptimizer::place_of_parameter(const at::Tensor& parameter) const {
  const auto found = positions_.find(parameter.unsafeGetTensorImpl());
  return found != positions_.end() ? places_[found->second] : place_;
}

distributed::ProcessGroup* ShardedOptimizer::others() const {
  return mesh_ == nullptr ? nullptr : mesh_->along("dp_replicate");
}

bool ShardedOptimizer::is_in_first_copy() const { return ranks_->rank() < place_.count; }

void ShardedOptimizer::begin(const StrategyInputs& inputs) {
  Ddp::begin(inputs);
  if (!saves_rows()) return;
  const auto add = [this](core::Stateful* part) {
    if (part == nullptr) return;
    states_.emplace_back(part, std::make_unique<ShardedState>(*part, wholes_, places_, *copy_, is_in_first_copy(),
                                                              [this] { before_tensors_written(); }));
  };
  add(inputs.experiment.optimizer.get());
  add(inputs.experiment.weight_average.get());
}

void ShardedOptimizer::end() {
  states_.clear();
  Ddp::end();
}

void ShardedOptimizer::begin_step(const StepPlan& plan) {
  for (const auto& [part, state] : states_) state->release();  // what the last save gathered
  ShardedOptimizer::refresh_weights();
  Ddp::begin_step(plan);
}

void ShardedOptimizer::refresh_weights() {
  if (std::exchange(are_behind_, false)) share_rows();
}

core::Stateful& ShardedOptimizer::state_of(core::Stateful& part) {
  for (const auto& [of, state] : states_) {
    if (of == &part) return *state;
  }
  return part;
}

std::vector<components::TensorRows> ShardedOptimizer::saved_rows() {
  std::vector<components::TensorRows> rows;
  if (!is_in_first_copy()) return rows;
  for (const components::NamedTensor& parameter : experiment_->model->parameters()) {
    const ShardPlace& place = place_of_parameter(parameter.tensor);
    if (!place.counts()) continue;
    rows.push_back({parameter.name, shard_of(parameter.tensor.detach(), place), place_of(parameter.tensor, place)});
  }
  return rows;
}

void ShardedOptimizer::gather_state() {
  // Another copy has the same state.
  if (!is_in_first_copy()) return;
  for (const auto& [part, state] : states_) state->gather();
}

void ShardedOptimizer::update(const SecondPass&, bool& began) {
  RECORD_USER_SCOPE("optimizer");
  hand_over_gradients();
  if (experiment_->master_weights) experiment_->master_weights->widen();
  began = true;
  experiment_->optimizer->step();
  if (experiment_->master_weights) experiment_->master_weights->narrow();
  share_rows();
}

void ShardedOptimizer::hand_over_gradients() {
  for (std::size_t i = 0; i < wholes_.size(); ++i) {
    at::Tensor& gradient = wholes_[i].tensor.mutable_grad();
    at::Tensor& of_shard = shards_[i].tensor.mutable_grad();
    RUNNER_ASSERT(shards_[i].tensor.storage().is_alias_of(wholes_[i].tensor.storage()), "rows lie in their parameter");
    of_shard.reset();
    if (gradient.defined() && steps(i)) of_shard = shard_of(gradient, places_[i]);
    gradient.reset();
  }
}

std::size_t ShardedOptimizer::flights() const { return std::min(kInFlight, buckets_.size()); }

std::int64_t ShardedOptimizer::most_row_bytes() const {
  std::int64_t most = 0;
  for (const Bucket& bucket : buckets_) {
    const at::Tensor& first = wholes_[bucket.parts.front().parameter].tensor;
    most = std::max(most, bucket.elements * static_cast<std::int64_t>(first.element_size()));
  }
  constexpr std::int64_t kAligned = 8;  // for a bucket of any type
  return (most + kAligned - 1) / kAligned * kAligned;
}

std::vector<std::int64_t> ShardedOptimizer::sharing_bytes() const {
  return std::vector<std::int64_t>(flights(), (1 + place_.count) * most_row_bytes());
}

/// Sends the rows that this process has moved, and takes those of the others.
void ShardedOptimizer::share_rows() {
  if (place_.count == 1) return;
  RECORD_USER_SCOPE("gather weights");
  const at::NoGradGuard no_grad;
  for (const std::size_t i : large_) {
    const at::Tensor& whole = wholes_[i].tensor;
    copy_->broadcast(whole.detach(), *places_[i].owner, "the weights");
    whole.unsafeGetTensorImpl()->bump_version();  // as copying would
  }
  struct Flight {
    at::Tensor room;  // of its own and all processes' rows of a bucket, for one bucket after the other: the threads of
                      // an exchange may let go of a tensor late
    at::Tensor all;
    std::unique_ptr<distributed::Pending> pending;
  };
  std::array<Flight, kInFlight> in_flight;
  for (std::size_t i = 0; i < flights(); ++i) {
    const auto options = wholes_.front().tensor.options().requires_grad(false).dtype(at::kByte);
    in_flight[i].room = at::empty({(1 + place_.count) * most_row_bytes()}, options);
  }
  const auto land = [&](std::size_t number) {
    Flight& flight = in_flight[number % kInFlight];
    flight.pending->wait();
    for (int rank = 0; rank < place_.count; ++rank) {
      if (rank == place_.index) continue;
      std::int64_t at = rank * buckets_[number].elements;
      for (const auto& [i, of_each] : buckets_[number].parts) {
        const at::Tensor rows = part_of(shard_of(wholes_[i].tensor, places_[i].of(rank)), of_each);
        rows.copy_(flight.all.narrow(0, at, rows.numel()).view(rows.sizes()));
        at += rows.numel();
      }
    }
  };
  for (std::size_t number = 0; number < buckets_.size(); ++number) {
    if (number >= kInFlight) land(number - kInFlight);
    const Bucket& bucket = buckets_[number];
    Flight& flight = in_flight[number % kInFlight];
    const at::ScalarType type = wholes_[bucket.parts.front().parameter].tensor.scalar_type();
    const at::Tensor room = flight.room.view(type), mine = room.narrow(0, 0, bucket.elements);
    flight.all = room.narrow(0, bucket.elements, bucket.elements * place_.count);
    std::int64_t at = 0;
    for (const auto& [i, of_each] : bucket.parts) {
      const at::Tensor rows = part_of(shards_[i].tensor.detach(), of_each);
      mine.narrow(0, at, rows.numel()).view(rows.sizes()).copy_(rows);
      at += rows.numel();
    }
    mine.narrow(0, at, bucket.elements - at).zero_();  // of a process with fewer rows
    flight.pending = copy_->begin_all_gather(flight.all, mine, "the weights");
  }
  for (std::size_t number = buckets_.size() - std::min(buckets_.size(), kInFlight); number < buckets_.size(); ++number)
    land(number);
}

}  // namespace runner::train
