#include "tests/support/torch/stub_model_torch.h"

#include <string>
#include <utility>

namespace tests {
namespace {

using components::NamedTensors;
using components::block::Block;
using components::block::Tie;

class Holder final : public Block {
 public:
  Holder(NamedTensors parameters, NamedTensors buffers, std::vector<Tie> ties)
      : parameters_(std::move(parameters)), buffers_(std::move(buffers)), ties_(std::move(ties)) {}
  const std::string& name() const override { return name_; }
  const std::vector<components::TensorSpec>& inputs() const override { return no_specs_; }
  const std::vector<components::TensorSpec>& outputs() const override { return no_specs_; }
  void forward(components::TensorMap&) const override {}
  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return buffers_; }
  std::vector<Tie> ties() const override { return ties_; }
  void set_training(bool) override {}
  double forward_flops(std::int64_t) const override { return 0; }

 private:
  std::string name_ = "all";
  std::vector<components::TensorSpec> no_specs_;
  NamedTensors parameters_, buffers_;
  std::vector<Tie> ties_;
};

}  // namespace

std::unique_ptr<components::model::Model> stub_model(NamedTensors parameters, NamedTensors buffers,
                                                     std::vector<Tie> ties) {
  std::vector<std::unique_ptr<Block>> blocks;
  blocks.push_back(std::make_unique<Holder>(std::move(parameters), std::move(buffers), std::move(ties)));
  return std::make_unique<components::model::Model>(std::move(blocks));
}

}  // namespace tests
