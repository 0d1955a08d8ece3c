#include "components/model/model.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/block/quantized.h"
#include "components/model/placement.h"
#include "components/model/recompute/recompute.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  for (T& item : more) all.push_back(std::move(item));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (!contains(names, name)) names.push_back(name);
}

/// The weights of a block are where it computes.
class Stay {
 public:
  Stay(Placement& placement, std::size_t block) : placement_(placement), block_(block) { placement.enter(block); }
  ~Stay() { placement_.leave(block_); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  Placement& placement_;
  std::size_t block_;
};

}  // namespace

Model::Model(std::vector<std::unique_ptr<block::Block>> blocks) : blocks_(std::move(blocks)) {
  std::set<std::string> names;
  for (const auto& block : blocks_) {
    RUNNER_ASSERT(names.insert(block->name()).second, "a model names each of its blocks once");
  }
}

Model::~Model() = default;

/// Moves what the block reads to its device, and has its weights there meanwhile. Behind the last block all is moved to
/// the main device.
template <typename Step>
void Model::placed(const block::Block& block, TensorMap& activations, const Step& step) const {
  if (placement_ == nullptr) return step();
  const auto is_it = [&block](const auto& one) { return one.get() == &block; };
  const auto number = static_cast<std::size_t>(std::find_if(blocks_.begin(), blocks_.end(), is_it) - blocks_.begin());
  const auto move = [&activations](const std::string& name, const c10::Device& device) {
    const at::Tensor* tensor = activations.find(name);
    if (tensor != nullptr && tensor->device() != device) activations.set(name, tensor->to(device));
  };
  for (const TensorSpec& port : block.inputs()) move(port.name, placement_->device_of(number));
  {
    const Stay stay(*placement_, number);
    step();
  }
  if (&block != blocks_.back().get()) return;
  // The loss reads what blocks gave, and of the batch what they have read.
  const std::vector<NamedTensor> all(activations.items().begin(), activations.items().end());
  for (const NamedTensor& named : all) move(named.name, placement_->main_device());
}

template <typename Step>
void Model::with_hooks(const block::Block& block, TensorMap& activations, const Step& step) const {
  for (const BlockHooks& hooks : hooks_) {
    if (hooks.before_forward) hooks.before_forward(block, activations);
  }
  step();
  for (auto hooks = hooks_.rbegin(); hooks != hooks_.rend(); ++hooks) {
    if (hooks->after_forward) hooks->after_forward(block, activations);
  }
}

std::vector<TensorSpec> Model::inputs() const {
  std::vector<TensorSpec> inputs;
  std::vector<std::string> known;
  for (const auto& block : blocks_) {
    for (const TensorSpec& port : block->inputs()) {
      if (contains(known, port.name)) continue;
      known.push_back(port.name);
      inputs.push_back(port);
    }
    for (const TensorSpec& port : block->outputs()) add_once(known, port.name);
  }
  return inputs;
}

std::vector<TensorSpec> Model::outputs() const {
  std::vector<TensorSpec> outputs;
  const auto forget = [&outputs](const TensorSpec& port) {
    std::erase_if(outputs, [&port](const TensorSpec& output) { return output.name == port.name; });
  };
  for (const auto& block : blocks_) {
    for (const TensorSpec& port : block->inputs()) forget(port);
    for (const TensorSpec& port : block->outputs()) {
      forget(port);
      outputs.push_back(port);
    }
  }
  return outputs;
}

bool Model::continues_text() const {
  const std::vector<TensorSpec> given = outputs();
  const TensorSpec* output = find_spec(given, kOutput);
  constexpr std::size_t kOfPositions = 3;  // [batch, time, vocabulary]
  const auto looks_ahead = [](const auto& block) { return block->looks_ahead() && !block->encodes(); };
  const auto decodes = [](const auto& block) { return block->decodes(); };
  // A head of classes of each position is behind layers that decode, and does not.
  if (!blocks_.back()->decodes() && std::any_of(blocks_.begin(), blocks_.end(), decodes)) return false;
  return output != nullptr && output->shape.size() == kOfPositions && output->shape[1] == kTime &&
         std::none_of(blocks_.begin(), blocks_.end(), looks_ahead);
}

void Model::forward(TensorMap& activations) const {
  forward_all_but_last(activations);
  forward_block(*blocks_.back(), activations);
}

void Model::forward_block(const block::Block& block, TensorMap& activations) const {
  placed(block, activations, [&] { with_hooks(block, activations, [&] { block.forward(activations); }); });
}

void Model::encode_block(const block::Block& block, TensorMap& activations) const {
  placed(block, activations, [&] { block.forward(activations); });
}

void Model::decode_block(const block::Block& block, TensorMap& activations, part::CachedPass& pass) const {
  placed(block, activations, [&] { block.decode(activations, pass); });
}

void Model::keep_source(const block::Block& block, TensorMap& activations, part::KvCache& cache,
                        std::int64_t slot) const {
  placed(block, activations, [&] { block.keep_source(activations, cache, slot); });
}

void Model::forward_for_loss(TensorMap& activations) const {
  const block::Block& last = *blocks_.back();
  forward_all_but_last(activations);
  const std::size_t number = blocks_.size() - 1;
  // The loss would read a projection of another device.
  if (placement_ != nullptr && placement_->device_of(number) != placement_->main_device()) {
    return forward_block(last, activations);
  }
  if (placement_ != nullptr) {
    placement_->enter(number);
    placement_->linger(number);
  }
  placed(last, activations, [&] { with_hooks(last, activations, [&] { last.forward_hidden(activations); }); });
}

void Model::forward_all_but_last(TensorMap& activations) const {
  auto recomputed = recomputed_.begin();
  for (std::size_t i = 0; i + 1 < blocks_.size();) {
    if (recomputed != recomputed_.end() && recomputed->blocks.first == i) {
      forward_recomputed(recomputed->part, activations);
      i += recomputed->blocks.count;
      ++recomputed;
    } else {
      forward_block(*blocks_[i++], activations);
    }
  }
}

void Model::set_recomputed(const std::vector<RecomputedBlocks>& blocks) {
  std::vector<Recomputed> recomputed;
  std::size_t end = 0;
  for (const RecomputedBlocks& part : blocks) {
    RUNNER_ASSERT(part.count > 0 && part.first >= end && part.first + part.count < blocks_.size(),
                  "recomputed blocks are named in order and once, and never the last one");
    end = part.first + part.count;
    recomputed.push_back({part, make_recomputed(part)});
  }
  recomputed_ = std::move(recomputed);
}

std::vector<RecomputedBlocks> Model::recomputed() const {
  std::vector<RecomputedBlocks> blocks;
  for (const Recomputed& part : recomputed_) blocks.push_back(part.blocks);
  return blocks;
}

std::shared_ptr<const RecomputedPart> Model::make_recomputed(const RecomputedBlocks& blocks) const {
  auto part = std::make_shared<RecomputedPart>();
  part->save_matmuls = blocks.save_matmuls;
  const NamedTensors all = parameters();
  for (std::size_t i = blocks.first; i < blocks.first + blocks.count; ++i) {
    const block::Block& block = *blocks_[i];
    for (const TensorSpec& port : block.inputs()) {
      if (!contains(part->outputs, port.name)) add_once(part->inputs, port.name);
    }
    for (const TensorSpec& port : block.outputs()) add_once(part->outputs, port.name);
    append(part->parameters, block.parameters());
    append(part->buffers, block.buffers());
  }
  for (std::size_t i = blocks.first; i < blocks.first + blocks.count; ++i) {
    for (const block::Tie& tie : blocks_[i]->ties()) {
      const auto is_owner = [&tie](const NamedTensor& parameter) { return parameter.name == tie.owner; };
      if (std::any_of(part->parameters.begin(), part->parameters.end(), is_owner)) continue;
      const auto owner = std::find_if(all.begin(), all.end(), is_owner);
      RUNNER_ASSERT(owner != all.end(), "a tied parameter has an owner in the same model");
      part->parameters.push_back(*owner);
    }
  }
  part->forward = [this, blocks](TensorMap& activations) {
    for (std::size_t i = blocks.first; i < blocks.first + blocks.count; ++i) forward_block(*blocks_[i], activations);
  };
  return part;
}

void Model::visit_weights(const std::function<void(const block::Block&)>& visit) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    std::optional<Stay> stay;
    if (placement_ != nullptr) stay.emplace(*placement_, i);
    visit(*blocks_[i]);
  }
}

std::vector<NamedTensor> Model::parameters() const {
  std::vector<NamedTensor> all;
  for (const auto& block : blocks_) append(all, block->parameters());
  return all;
}

std::vector<NamedTensor> Model::trained_parameters() const {
  std::vector<NamedTensor> trained = parameters();
  std::erase_if(trained, [](const NamedTensor& parameter) { return !parameter.tensor.requires_grad(); });
  return trained;
}

std::vector<NamedTensor> Model::buffers() const {
  std::vector<NamedTensor> all;
  for (const auto& block : blocks_) append(all, block->buffers());
  return all;
}

std::vector<NamedTensor> Model::constants() const {
  std::vector<NamedTensor> all;
  for (const auto& block : blocks_) append(all, block->constants());
  return all;
}

std::vector<block::Tie> Model::ties() const {
  std::vector<block::Tie> all;
  for (const auto& block : blocks_) append(all, block->ties());
  return all;
}

void Model::set_training(bool training) {
  is_training_ = training;
  for (const auto& block : blocks_) block->set_training(training);
}

void Model::set_running_stats_momentum(std::optional<double> momentum) {
  for (const auto& block : blocks_) block->set_running_stats_momentum(momentum);
}

void Model::decay_running_stats(std::int64_t batches) {
  for (const auto& block : blocks_) block->decay_running_stats(batches);
}

double Model::forward_flops(std::int64_t positions) const {
  double flops = 0.0;
  for (const auto& block : blocks_) flops += block->forward_flops(positions);
  return flops;
}

double Model::training_flops(std::int64_t positions) const {
  const std::vector<NamedTensor> all = parameters();
  double flops = 0.0;
  bool input_has_gradient = false;
  for (const auto& block : blocks_) {
    std::vector<NamedTensor> used = block->parameters();
    for (const block::Tie& tie : block->ties()) {
      std::copy_if(all.begin(), all.end(), std::back_inserter(used),
                   [&tie](const NamedTensor& parameter) { return parameter.name == tie.owner; });
    }
    double elements = 0.0, trained = 0.0;
    for (const NamedTensor& parameter : used) {
      const auto size = static_cast<double>(parameter.tensor.numel());
      elements += size;
      if (parameter.tensor.requires_grad()) trained += size;
    }
    elements += static_cast<double>(block::quantized_count(*block));
    // By convention the first block counts as if its input had a gradient, too.
    input_has_gradient = input_has_gradient || trained > 0.0;
    const double of_weights = elements > 0.0 ? trained / elements : (input_has_gradient ? 1.0 : 0.0);
    flops += block->forward_flops(positions) * (1.0 + (input_has_gradient ? 1.0 : 0.0) + of_weights);
  }
  return flops;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : parameters()) count += parameter.tensor.numel();
  for (const auto& block : blocks_) count += block::quantized_count(*block);
  return count;
}

}  // namespace components::model
