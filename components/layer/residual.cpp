#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/block/basic_block.h"
#include "components/block/parts_memory.h"
#include "components/layer/chain.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/residual.h"  // Config; declares make()

namespace components::layer::residual {
namespace {

/// Its lists of layers; shortcut and activation are null if not in the recipe.
struct Chains {
  std::unique_ptr<Chain> body, shortcut, activation;

  const Port& output() const { return activation != nullptr ? activation->output() : body->output(); }
  std::vector<const Chain*> all() const {
    std::vector<const Chain*> chains;
    for (const auto* chain : {&body, &shortcut, &activation}) {
      if (*chain != nullptr) chains.push_back(chain->get());
    }
    return chains;
  }
};

Port output_of(const Chains& chains, const Inputs& inputs) {
  Port output = chains.output();
  output.name = inputs.output_name;
  return output;
}

class Residual final : public block::BasicBlock {
 public:
  Residual(Chains chains, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, output_of(chains, inputs)), chains_(std::move(chains)) {}

  void forward(TensorMap& activations) const override {
    const at::Tensor& x = read(activations);
    const at::Tensor around = chains_.shortcut != nullptr ? chains_.shortcut->forward(x) : x;
    const Chain* activation = chains_.activation.get();
    if (chains_.body->takes_tail() && (activation == nullptr || activation->is_relu())) {
      write(activations, chains_.body->forward_with_tail(x, around, activation != nullptr));
      return;
    }
    const at::Tensor sum = chains_.body->forward(x) + around;
    write(activations, activation != nullptr ? activation->forward(sum) : sum);
  }

  std::vector<NamedTensor> parameters() const override { return joined(&Chain::parameters); }
  std::vector<NamedTensor> buffers() const override { return joined(&Chain::buffers); }
  std::vector<block::Tie> ties() const override { return joined(&Chain::ties); }
  void set_training(bool training) override {
    for (const Chain* chain : chains_.all()) chain->set_training(training);
  }
  void set_statistics_share(std::optional<double> share) override {
    for (const Chain* chain : chains_.all()) chain->set_statistics_share(share);
  }
  void fade_statistics(std::int64_t batches) override {
    for (const Chain* chain : chains_.all()) chain->fade_statistics(batches);
  }
  block::BlockMemory memory(const block::BlockPass& pass) const override;
  double forward_flops(std::int64_t positions) const override {
    double flops = 0;
    for (const Chain* chain : chains_.all()) flops += chain->forward_flops(positions);
    return flops;
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

// The shortcut runs first, and its output lives while the body runs; its backward pass comes last.
block::BlockMemory Residual::memory(const block::BlockPass& pass) const {
  const auto bytes = [&pass](const Port& port, std::int64_t of_one) {
    return elements(port, pass.samples, pass.positions) * static_cast<double>(of_one);
  };
  const Chain* shortcut = chains_.shortcut.get();
  const bool takes_tail =
      chains_.body->takes_tail() && (chains_.activation == nullptr || chains_.activation->is_relu());
  const Chain::Tail tail{takes_tail, takes_tail && chains_.activation != nullptr};
  const block::BlockMemory body = chains_.body->memory(input(), pass, tail);
  const block::BlockMemory around =
      shortcut != nullptr
          ? shortcut->memory(input(), pass, {})
          : block::BlockMemory{.output_bytes = pass.input_bytes, .output_is_input = true, .keeps_input = false};
  const double sum = bytes(chains_.body->output(), body.output_bytes), of_input = bytes(input(), pass.input_bytes);
  const double beside = around.output_is_input ? 0.0 : sum;  // as long as the body runs
  const double around_kept = around.kept + (around.keeps_output ? beside : 0.0);
  block::PartsMemory parts(of_input);
  block::BlockMemory both = body;  // the two and their sum as one part
  both.keeps_input = body.keeps_input || around.keeps_input;
  both.kept += around_kept;
  both.products += around.products;
  both.low_weights += around.low_weights;
  both.steady_weights += around.steady_weights;
  const double passing = around.keeps_output ? 0.0 : beside;
  both.forward = std::max(around.forward - body.kept, passing + body.forward);
  both.alone = std::max(around.alone, beside + body.alone);
  // The gradient of the sum is the shortcut's own while the body's pass runs, and then that of the input waits.
  both.backward = std::max(body.backward, of_input + around.backward - body.kept);
  both.backward_end = std::max(body.backward_end, of_input + around.backward_end - body.kept);
  if (!takes_tail) {
    // The body's output is added into another tensor, and kept only if the body keeps it.
    both.keeps_output = false;
    if (body.keeps_output) both.kept += sum;
    (body.keeps_output ? both.alone : both.forward) += sum;
    both.alone = std::max(both.alone, sum + beside);
  }
  parts.add(both, sum);
  if (!takes_tail && chains_.activation != nullptr) {
    block::BlockPass after = pass;
    after.input_bytes = body.output_bytes;
    const block::BlockMemory last = chains_.activation->memory(chains_.body->output(), after, {});
    parts.add(last, bytes(output(), last.output_bytes));
  }
  return parts.whole();
}

bool same_shapes(const Port& body, const Port& around, bool has_shortcut, const Inputs& inputs) {
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
  const Port& around = chains.shortcut != nullptr ? chains.shortcut->output() : inputs.input;
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
