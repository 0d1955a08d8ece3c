#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/layer/layer.h"
#include "components/model/model.h"
#include "components/tensors.h"
#include "generated/model/sequential.h"  // Config; declares make()

namespace components::model::sequential {
namespace {

/// A layer as a block that the model owns; make() of a layer hands out a shared one.
class Owned final : public Block {
 public:
  explicit Owned(std::shared_ptr<layer::Layer> layer) : layer_(std::move(layer)) {}

  const std::string& name() const override { return layer_->name(); }
  const std::vector<Port>& inputs() const override { return layer_->inputs(); }
  const std::vector<Port>& outputs() const override { return layer_->outputs(); }
  void forward(TensorMap& activations) const override { layer_->forward(activations); }
  std::vector<NamedTensor> parameters() const override { return layer_->parameters(); }
  std::vector<NamedTensor> buffers() const override { return layer_->buffers(); }
  std::vector<Tie> ties() const override { return layer_->ties(); }
  void set_training(bool training) override { layer_->set_training(training); }
  double forward_flops(std::int64_t positions) const override { return layer_->forward_flops(positions); }

 private:
  std::shared_ptr<layer::Layer> layer_;
};

}  // namespace

std::shared_ptr<Model> make(const Config& config, const Inputs& inputs) {
  std::vector<std::unique_ptr<Block>> blocks;
  Port port = inputs.data.input;
  port.name = kInput;
  std::string from = "the data";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::string path = "layers[" + std::to_string(i) + "]";
    const bool last = i + 1 == config.layers.size();
    const layer::Inputs layer_inputs{.name = "layers." + std::to_string(i),
                                     .path = path,
                                     .from = from,
                                     .input = port,
                                     .output_name = last ? kOutput : "x",
                                     .vocab_size = inputs.data.vocab_size,
                                     .meta = inputs.meta,
                                     .block = config.layers[i],
                                     .diagnostics = inputs.diagnostics};
    std::shared_ptr<layer::Layer> built = layer::build(config.layers[i], layer_inputs);
    if (built == nullptr) return nullptr;  // what follows cannot be judged without it
    port = built->outputs().front();
    from = path;
    blocks.push_back(std::make_unique<Owned>(std::move(built)));
  }
  return std::make_shared<Model>(std::move(blocks));
}

}  // namespace components::model::sequential
