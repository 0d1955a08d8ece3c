#include <memory>
#include <optional>
#include <utility>

#include "components/block/basic_block.h"
#include "components/layer/chain.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/sequential.h"  // Config; declares make()

namespace components::layer::sequential {
namespace {

TensorSpec output_of(const Chain& chain, const Inputs& inputs) {
  TensorSpec output = chain.output();
  output.name = inputs.output_name;
  return output;
}

class Sequential final : public block::BasicBlock, public NondeterministicOnGpu {
 public:
  Sequential(std::unique_ptr<Chain> chain, const Inputs& inputs)
      : BasicBlock(inputs.name, inputs.input, output_of(*chain, inputs)), chain_(std::move(chain)) {}

  void forward(TensorMap& activations) const override { write(activations, chain_->forward(read(activations))); }

  std::vector<NamedTensor> parameters() const override { return chain_->parameters(); }
  std::vector<NamedTensor> buffers() const override { return chain_->buffers(); }
  std::vector<NamedTensor> constants() const override { return chain_->constants(); }
  std::vector<block::Tie> ties() const override { return chain_->ties(); }
  void set_training(bool training) override { chain_->set_training(training); }
  void set_running_stats_momentum(std::optional<double> momentum) override {
    chain_->set_running_stats_momentum(momentum);
  }
  void decay_running_stats(std::int64_t batches) override { chain_->decay_running_stats(batches); }
  double forward_flops(std::int64_t positions) const override { return chain_->forward_flops(positions); }
  std::string nondeterministic_operation() const override { return chain_->nondeterministic_operation(); }

 private:
  std::unique_ptr<Chain> chain_;
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  auto chain = Chain::build(config.layers, "layers", inputs);
  if (chain == nullptr) return nullptr;
  return std::make_shared<Sequential>(std::move(chain), inputs);
}

}  // namespace components::layer::sequential
