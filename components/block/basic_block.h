#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/block/block.h"
#include "components/part/weight.h"
#include "components/tensor/tensor_spec.h"

namespace components::block {

/// Base of most blocks: one input, one output, a list of parameters. The concrete block adds `forward` and its flops.
class BasicBlock : public Block {
 public:
  /// Without parameters and buffers.
  BasicBlock(std::string name, TensorSpec input, TensorSpec output);
  /// `maker` is used by the concrete block's constructor only.
  BasicBlock(std::string name, TensorSpec input, TensorSpec output, part::WeightMaker& maker);
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
  /// Another activation that `forward` reads, such as an optional tensor of the batch.
  void add_input(TensorSpec input) { inputs_.push_back(std::move(input)); }
  /// Another activation that `forward` writes.
  void add_output(TensorSpec output) { outputs_.push_back(std::move(output)); }
  /// What this block declares: `part::Linear qkv_{declared(), ...}`.
  part::Declared& declared() { return declared_; }
  /// Declares a parameter under its full name and returns its position in the order of declaration.
  std::size_t add_parameter(std::string full_name, std::span<const std::int64_t> shape, const part::Init& init);
  std::size_t add_parameter(std::string full_name, std::initializer_list<std::int64_t> shape, const part::Init& init);
  /// A parameter by that position: `forward` needs no look-up by name.
  const at::Tensor& parameter(std::size_t position) const;
  std::size_t parameter_count() const;
  /// The same for buffers, which are saved with the parameters but not trained. `value`: of all elements at first.
  std::size_t add_buffer(std::string full_name, std::initializer_list<std::int64_t> shape, double value);
  const at::Tensor& buffer(std::size_t position) const;
  std::size_t buffer_count() const;
  /// Names of this block's input and output activations.
  const at::Tensor& read(const TensorMap& activations) const;
  void write(TensorMap& activations, at::Tensor tensor) const;

 private:
  std::string name_;
  std::vector<TensorSpec> inputs_, outputs_;
  part::Declared declared_;
  bool training_ = true;
};

}  // namespace components::block
