// B: samples   T: positions   E: embedding_dim   V: ids

#include <ATen/ops/embedding.h>

#include <memory>
#include <string>

#include "components/block/basic_block.h"
#include "components/layer/layer.h"
#include "components/tensor/tensors.h"
#include "generated/layer/embedding.h"  // Config; declares make()

namespace components::layer::embedding {
namespace {

TensorSpec output_of(const Config& config, const Inputs& inputs) {
  TensorSpec output{inputs.output_name, Dtype::kFloat32, inputs.input.shape};
  output.shape.push_back(config.embedding_dim);
  return output;
}

class Embedding final : public block::BasicBlock {
 public:
  Embedding(const Config& config, const Inputs& inputs, std::int64_t ids)
      : BasicBlock(inputs.name, inputs.input, output_of(config, inputs), inputs.weights) {
    add_parameter(name() + ".weight", {ids, config.embedding_dim}, part::normal(1.0));
  }

  void forward(TensorMap& activations) const override {
    write(activations, at::embedding(parameter(0), read(activations)));  // [B, T] -> [B, T, E]
  }
};

}  // namespace

std::shared_ptr<Layer> make(const Config& config, const Inputs& inputs) {
  if (inputs.input.dtype != Dtype::kInt64) {
    report_input_mismatch(inputs, nullptr, "needs ids, int64", "put an embedding first, and only for data of ids");
    return nullptr;
  }
  const std::string ids = std::to_string(inputs.vocab_size);
  if (!config.num_embeddings && inputs.vocab_size <= 0) {
    inputs.diagnostics.error(inputs.block.location(), inputs.path + ": num_embeddings cannot be derived from the data",
                             "set num_embeddings");
    return nullptr;
  }
  if (config.num_embeddings && *config.num_embeddings < inputs.vocab_size) {
    const runner::core::Node* node = inputs.block.find("num_embeddings");
    inputs.diagnostics.error(node != nullptr ? node->location() : inputs.block.location(),
                             inputs.path + ": num_embeddings is " + std::to_string(*config.num_embeddings) +
                                 ", but the data has " + ids + " distinct ids",
                             "set num_embeddings to " + ids + " or leave it out");
    return nullptr;
  }
  return std::make_shared<Embedding>(config, inputs, config.num_embeddings.value_or(inputs.vocab_size));
}

}  // namespace components::layer::embedding
