#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "components/block/block.h"
#include "components/tensor/tensor_spec.h"

namespace components::block {

/// Base of most blocks: one input, one output, a list of parameters. The concrete block adds `forward` and its flops.
class BasicBlock : public Block {
 public:
  BasicBlock(std::string name, TensorSpec input, TensorSpec output);
  ~BasicBlock() override;

  const std::string& name() const override { return name_; }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  std::vector<NamedTensor> parameters() const override;
  std::vector<NamedTensor> buffers() const override;
  std::vector<Tie> ties() const override { return {}; }
  void set_training(bool training) override { training_ = training; }
  double forward_flops(std::int64_t) const override { return 0.0; }

 protected:
  const TensorSpec& input() const { return inputs_.front(); }
  const TensorSpec& output() const { return outputs_.front(); }
  bool training() const { return training_; }
  /// Adds a parameter under its full name and returns its position in the order of addition.
  std::size_t add_parameter(std::string full_name, const at::Tensor& tensor);
  /// A parameter by that position: `forward` needs no look-up by name.
  const at::Tensor& parameter(std::size_t position) const;
  std::size_t parameter_count() const { return parameters_.size(); }
  /// The same for buffers, which are saved with the parameters but not trained.
  std::size_t add_buffer(std::string full_name, const at::Tensor& tensor);
  const at::Tensor& buffer(std::size_t position) const;
  std::size_t buffer_count() const { return buffers_.size(); }
  /// Names of this block's input and output activations.
  const at::Tensor& read(const TensorMap& activations) const;
  void write(TensorMap& activations, at::Tensor tensor) const;

 private:
  std::string name_;
  std::vector<TensorSpec> inputs_, outputs_;
  std::vector<NamedTensor> parameters_, buffers_;
  bool training_ = true;
};

/// New trainable float32 tensors. With `meta`, shapes only: no memory and no draw from the generator.
at::Tensor uniform_parameter(std::span<const std::int64_t> shape, double bound, bool meta);
at::Tensor normal_parameter(std::span<const std::int64_t> shape, double deviation, bool meta);
at::Tensor constant_parameter(std::span<const std::int64_t> shape, double value, bool meta);

/// A new float32 tensor that is not trained.
at::Tensor constant_buffer(std::span<const std::int64_t> shape, double value, bool meta);

/// A weight whose every output is a sum over `fan_in` inputs, initialized as in torch.nn.Linear and torch.nn.Conv2d.
at::Tensor kaiming_uniform_weight(std::span<const std::int64_t> shape, std::int64_t fan_in, bool meta);

/// Weight [out, in] and bias [out] of a linear layer, initialized as in torch.nn.Linear and in its order of draws, so
/// the same seed gives the same numbers.
at::Tensor linear_weight(std::int64_t in_features, std::int64_t out_features, bool meta);
at::Tensor linear_bias(std::int64_t in_features, std::int64_t out_features, bool meta);

}  // namespace components::block
