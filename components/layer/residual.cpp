#include <ATen/TensorOperators.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/layer/chain.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/residual.h"  // Config; declares make()

namespace components::layer::residual {
namespace {

/// Its lists of layers; shortcut and activation are null if not in the recipe.
struct Chains {
  std::unique_ptr<Chain> body, shortcut, activation;

  const TensorSpec& output() const { return activation != nullptr ? activation->output() : body->output(); }
  std::vector<const Chain*> all() const {
    std::vector<const Chain*> chains;
    for (const auto* chain : {&body, &shortcut, &activation}) {
      if (*chain != nullptr) chains.push_back(chain->get());
    }
    return chains;
  }
};

TensorSpec output_of(const Chains& chains, const Inputs& inputs) {
  TensorSpec output = chains.output();
  output.name = inputs.output_name;
  return output;
}

class Residual final : public block::BasicBlock, public NondeterministicOnGpu {
 public:
  Residual(Chains chains, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, output_of(chains, inputs)), chains_(std::move(chains)) {}

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    const at::Tensor around = chains_.shortcut != nullptr ? chains_.shortcut->forward(x) : x;
    const Chain* activation = chains_.activation.get();
    if (chains_.body->fuses_epilogue() && (activation == nullptr || activation->is_relu())) {
      write(activations, chains_.body->forward_fused(x, around, activation != nullptr));
      return;
    }
    const at::Tensor sum = chains_.body->forward(x) + around;
    write(activations, activation != nullptr ? activation->forward(sum) : sum);
  }

  std::vector<NamedTensor> parameters() const override { return joined(&Chain::parameters); }
  std::vector<NamedTensor> buffers() const override { return joined(&Chain::buffers); }
  std::vector<NamedTensor> constants() const override { return joined(&Chain::constants); }
  std::vector<block::Tie> ties() const override { return joined(&Chain::ties); }
  void set_training(bool training) override {
    for (const Chain* chain : chains_.all()) chain->set_training(training);
  }
  void set_running_stats_momentum(std::optional<double> momentum) override {
    for (const Chain* chain : chains_.all()) chain->set_running_stats_momentum(momentum);
  }
  void decay_running_stats(std::int64_t batches) override {
    for (const Chain* chain : chains_.all()) chain->decay_running_stats(batches);
  }
  double forward_flops(std::int64_t positions) const override {
    double flops = 0;
    for (const Chain* chain : chains_.all()) flops += chain->forward_flops(positions);
    return flops;
  }
  std::string nondeterministic_operation() const override {
    for (const Chain* chain : chains_.all()) {
      if (std::string operation = chain->nondeterministic_operation(); !operation.empty()) return operation;
    }
    return {};
  }

 private:
  template <typename T>
  std::vector<T> joined(std::vector<T> (Chain::*of)() const) const {
    std::vector<T> items;
    for (const Chain* chain : chains_.all()) {
      for (T& item : (chain->*of)()) items.push_back(std::move(item));
    }
    return items;
  }

  Chains chains_;
};

bool same_shapes(const TensorSpec& body, const TensorSpec& around, bool has_shortcut, const Inputs& inputs) {
  if (body.shape == around.shape && body.dtype == around.dtype) return true;
  inputs.diagnostics.error(
      inputs.block.location(),
      inputs.path + ": residual adds its body's output, " + to_text(body) + ", to " +
          (has_shortcut ? "its shortcut's output, " : "its input, ") + to_text(around),
      has_shortcut
          ? "give both the same shape"
          : "give it a shortcut with the same output shape, such as a conv2d with kernel_size 1 and the body's "
            "channels and stride");
  return false;
}

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  Chains chains;
  chains.body = Chain::build(config.body, "body", inputs);
  if (chains.body == nullptr) return nullptr;
  if (!config.shortcut.empty()) {
    chains.shortcut = Chain::build(config.shortcut, "shortcut", inputs);
    if (chains.shortcut == nullptr) return nullptr;
  }
  const TensorSpec& around = chains.shortcut != nullptr ? chains.shortcut->output() : inputs.input;
  if (!same_shapes(chains.body->output(), around, chains.shortcut != nullptr, inputs)) return nullptr;
  if (!config.activation.empty()) {
    Inputs after = inputs;
    after.input = chains.body->output();
    after.from = "the sum";
    chains.activation = Chain::build(config.activation, "activation", after);
    if (chains.activation == nullptr) return nullptr;
  }
  return std::make_shared<Residual>(std::move(chains), inputs);
}

}  // namespace components::layer::residual
