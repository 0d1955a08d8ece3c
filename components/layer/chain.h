#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/layer/epilogue.h"
#include "components/layer/layer.h"

namespace components::layer {

/// The layers of a list, each made for the previous one's output; empty, with an error in `outer.diagnostics`, when one
/// does not fit (later ones cannot be checked then).
///
/// key    of the list in the block of `outer`: names become `<name>.<key>.0`, in messages `<path>.<key>[0]`
std::vector<std::shared_ptr<Layer>> build_list(const std::vector<runner::core::Node>& blocks, const std::string& key,
                                               const Inputs& outer);

/// A list of layers inside of a layer. No hook runs in between, so consecutive layers may be fused: a norm includes the
/// ReLU after it.
class Chain {
 public:
  /// Null when a layer does not fit.
  static std::unique_ptr<Chain> build(const std::vector<runner::core::Node>& blocks, const std::string& key,
                                      const Inputs& outer);

  const TensorSpec& output() const { return layers_.back()->outputs().front(); }
  at::Tensor forward(at::Tensor x) const;

  /// Whether its last layer can add and rectify in the same pass; forward_fused() requires it.
  bool fuses_epilogue() const { return steps_.back().epilogue != nullptr && !steps_.back().relu; }
  at::Tensor forward_fused(at::Tensor x, const at::Tensor& addend, bool relu) const;
  /// Whether it is a ReLU and nothing else.
  bool is_relu() const { return is_relu_; }

  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> buffers() const;
  std::vector<NamedTensor> constants() const;
  std::vector<block::Tie> ties() const;
  void set_training(bool training) const;
  void set_running_stats_momentum(std::optional<double> momentum) const;
  void decay_running_stats(std::int64_t batches) const;
  double forward_flops(std::int64_t positions) const;
  std::string nondeterministic_operation() const;

 private:
  struct Step {
    const Layer* layer;
    const FusesEpilogue* epilogue;  ///< the layer, when it is one
    bool relu;                      ///< that it takes along
  };
  Chain(std::vector<std::shared_ptr<Layer>> layers, const std::vector<runner::core::Node>& blocks);
  at::Tensor run(at::Tensor x, std::size_t steps) const;

  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<Step> steps_;
  bool is_relu_;
};

}  // namespace components::layer
