#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "components/layer/chain.h"
#include "components/layer/layer.h"
#include "components/model/model.h"
#include "components/tensor/tensors.h"
#include "generated/model/sequential.h"  // Config; declares make()

namespace components::model::sequential {
namespace {

/// A layer as a block that the model owns; make() of a layer hands out a shared one.
class Owned final : public block::Block, public layer::NondeterministicOnGpu {
 public:
  Owned(std::shared_ptr<layer::Layer> layer, MemoryFormat memory_format)
      : layer_(std::move(layer)), channels_last_(memory_format == MemoryFormat::kChannelsLast) {}

  const std::string& name() const override { return layer_->name(); }
  const std::vector<TensorSpec>& inputs() const override { return layer_->inputs(); }
  const std::vector<TensorSpec>& outputs() const override { return layer_->outputs(); }
  void forward(TensorMap& activations) const override {
    if (channels_last_) lay_out(activations);
    layer_->forward(activations);
  }
  std::vector<NamedTensor> parameters() const override { return layer_->parameters(); }
  std::vector<NamedTensor> buffers() const override { return layer_->buffers(); }
  std::vector<NamedTensor> constants() const override { return layer_->constants(); }
  std::vector<block::Tie> ties() const override { return layer_->ties(); }
  void set_training(bool training) override { layer_->set_training(training); }
  void set_running_stats_momentum(std::optional<double> momentum) override {
    layer_->set_running_stats_momentum(momentum);
  }
  void decay_running_stats(std::int64_t batches) override { layer_->decay_running_stats(batches); }
  double forward_flops(std::int64_t positions) const override { return layer_->forward_flops(positions); }
  std::string nondeterministic_operation() const override { return layer::nondeterministic_operation(*layer_); }
  void save_state(runner::core::StateWriter& writer) const override { layer_->save_state(writer); }
  void load_state(const runner::core::StateReader& reader) override { layer_->load_state(reader); }

 private:
  /// Most layers keep the order in memory that they are given, so this copies little more than the data.
  void lay_out(TensorMap& activations) const {
    const TensorSpec& port = inputs().front();
    if (port.shape.size() != 4) return;
    activations.set(port.name, activations.at(port.name).contiguous(at::MemoryFormat::ChannelsLast));
  }

  std::shared_ptr<layer::Layer> layer_;
  bool channels_last_;
};

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  const layer::Inputs first{.name = "",
                            .path = "",
                            .from = "the data",
                            .input = inputs.data.at(kInput),
                            .output_name = kOutput,
                            .vocab_size = inputs.data.at(kInput).vocab_size,
                            .weights = inputs.weights,
                            .block = inputs.block,
                            .diagnostics = inputs.diagnostics};
  std::vector<std::unique_ptr<block::Block>> blocks;
  for (auto& built : layer::build_list(config.layers, "layers", first)) {
    blocks.push_back(std::make_unique<Owned>(std::move(built), config.memory_format));
  }
  if (blocks.empty()) return nullptr;
  return std::make_shared<Model>(std::move(blocks));
}

}  // namespace components::model::sequential
