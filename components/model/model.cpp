#include "components/model/model.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "components/tensors.h"
#include "runner/core/error.h"

namespace components::model {
namespace {

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  for (T& item : more) all.push_back(std::move(item));
}

}  // namespace

Model::Model(std::vector<std::unique_ptr<Block>> blocks) : blocks_(std::move(blocks)) {
  std::set<std::string> names;
  for (const auto& block : blocks_) {
    RUNNER_ASSERT(names.insert(block->name()).second, "a model names each of its blocks once");
  }
}

Model::~Model() = default;

template <typename Step>
void Model::with_hooks(const Block& block, TensorMap& activations, const Step& step) const {
  for (const BlockHooks& hooks : hooks_) {
    if (hooks.before_forward) hooks.before_forward(block, activations);
  }
  step();
  for (auto hooks = hooks_.rbegin(); hooks != hooks_.rend(); ++hooks) {
    if (hooks->after_forward) hooks->after_forward(block, activations);
  }
}

void Model::forward(TensorMap& activations) const {
  for (const auto& block : blocks_) forward_block(*block, activations);
}

void Model::forward_block(const Block& block, TensorMap& activations) const {
  with_hooks(block, activations, [&] { block.forward(activations); });
}

void Model::forward_for_loss(TensorMap& activations) const {
  const Block& last = *blocks_.back();
  for (const auto& block : blocks_) {
    if (block.get() != &last) forward_block(*block, activations);
  }
  with_hooks(last, activations, [&] { last.forward_hidden(activations); });
}

std::vector<NamedTensor> Model::parameters() const {
  std::vector<NamedTensor> all;
  for (const auto& block : blocks_) append(all, block->parameters());
  return all;
}

std::vector<NamedTensor> Model::buffers() const {
  std::vector<NamedTensor> all;
  for (const auto& block : blocks_) append(all, block->buffers());
  return all;
}

std::vector<Tie> Model::ties() const {
  std::vector<Tie> all;
  for (const auto& block : blocks_) append(all, block->ties());
  return all;
}

void Model::set_training(bool training) {
  for (const auto& block : blocks_) block->set_training(training);
}

double Model::forward_flops(std::int64_t positions) const {
  double flops = 0.0;
  for (const auto& block : blocks_) flops += block->forward_flops(positions);
  return flops;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedTensor& parameter : parameters()) count += parameter.tensor.numel();
  return count;
}

}  // namespace components::model
