#include "components/layer/chain.h"

#include <optional>
#include <utility>

#include "components/tensor/tensors.h"

namespace components::layer {
namespace {

constexpr const char* kActivation = "x";  // between the layers of a list

bool is_relu_block(const runner::core::Node& block) { return block.find("type")->as_string() == "relu"; }

template <typename T>
std::vector<T> joined(const std::vector<std::shared_ptr<Layer>>& layers, std::vector<T> (Layer::*of)() const) {
  std::vector<T> all;
  for (const auto& layer : layers) {
    for (T& item : ((*layer).*of)()) all.push_back(std::move(item));
  }
  return all;
}

}  // namespace

std::vector<std::shared_ptr<Layer>> build_list(const std::vector<runner::core::Node>& blocks, const std::string& key,
                                               const Inputs& outer) {
  std::vector<std::shared_ptr<Layer>> layers;
  const auto below = [&key](const std::string& name) { return name.empty() ? key : name + "." + key; };
  TensorSpec port = outer.input;
  std::string from = outer.from;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string path = below(outer.path) + "[" + std::to_string(i) + "]";
    const bool last = i + 1 == blocks.size();
    auto layer = build(blocks[i], {.name = below(outer.name) + "." + std::to_string(i),
                                   .path = path,
                                   .from = from,
                                   .input = port,
                                   .output_name = last ? outer.output_name : kActivation,
                                   .vocab_size = outer.vocab_size,
                                   .weights = outer.weights,
                                   .block = blocks[i],
                                   .diagnostics = outer.diagnostics});
    if (layer == nullptr) return {};
    port = layer->outputs().front();
    from = path;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::unique_ptr<Chain> Chain::build(const std::vector<runner::core::Node>& blocks, const std::string& key,
                                    const Inputs& outer) {
  Inputs inputs = outer;
  inputs.input.name = inputs.output_name = kActivation;
  auto layers = build_list(blocks, key, inputs);
  if (layers.empty()) return nullptr;
  return std::unique_ptr<Chain>(new Chain(std::move(layers), blocks));
}

Chain::Chain(std::vector<std::shared_ptr<Layer>> layers, const std::vector<runner::core::Node>& blocks)
    : layers_(std::move(layers)), is_relu_(blocks.size() == 1 && is_relu_block(blocks.front())) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto* epilogue = dynamic_cast<const FusesEpilogue*>(layers_[i].get());
    const bool relu = epilogue != nullptr && i + 1 < layers_.size() && is_relu_block(blocks[i + 1]);
    steps_.push_back({layers_[i].get(), epilogue, relu});
    if (relu) ++i;
  }
}

at::Tensor Chain::run(at::Tensor x, std::size_t steps) const {
  TensorMap activations;
  activations.set(kActivation, std::move(x));
  for (std::size_t i = 0; i < steps; ++i) {
    const Step& step = steps_[i];
    if (step.relu) {
      activations.set(kActivation, step.epilogue->forward_fused(activations.at(kActivation), nullptr, true));
    } else {
      step.layer->forward(activations);
    }
  }
  return activations.at(kActivation);
}

at::Tensor Chain::forward(at::Tensor x) const { return run(std::move(x), steps_.size()); }

at::Tensor Chain::forward_fused(at::Tensor x, const at::Tensor& addend, bool relu) const {
  return steps_.back().epilogue->forward_fused(run(std::move(x), steps_.size() - 1), &addend, relu);
}

std::vector<NamedTensor> Chain::parameters() const { return joined(layers_, &Layer::parameters); }

std::vector<NamedTensor> Chain::buffers() const { return joined(layers_, &Layer::buffers); }

std::vector<NamedTensor> Chain::constants() const { return joined(layers_, &Layer::constants); }

std::vector<block::Tie> Chain::ties() const { return joined(layers_, &Layer::ties); }

void Chain::set_training(bool training) const {
  for (const auto& layer : layers_) layer->set_training(training);
}

void Chain::set_running_stats_momentum(std::optional<double> momentum) const {
  for (const auto& layer : layers_) layer->set_running_stats_momentum(momentum);
}

void Chain::decay_running_stats(std::int64_t batches) const {
  for (const auto& layer : layers_) layer->decay_running_stats(batches);
}

std::string Chain::nondeterministic_operation() const {
  for (const auto& layer : layers_) {
    if (std::string operation = layer::nondeterministic_operation(*layer); !operation.empty()) return operation;
  }
  return {};
}

double Chain::forward_flops(std::int64_t positions) const {
  double flops = 0;
  for (const auto& layer : layers_) flops += layer->forward_flops(positions);
  return flops;
}

}  // namespace components::layer
