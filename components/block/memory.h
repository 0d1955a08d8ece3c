#pragma once

#include <cstdint>

namespace components::block {

class Block;

// The memory that a block reports, so that `roux plan` can add up a training before anything is allocated.
//
// For authors of a block: override Block::memory() and go through forward() line by line. A tensor that autograd, or
// your own node, saves for the backward pass belongs to `kept`; if it is the input or the output, set `keeps_input` or
// `keeps_output` instead, because neighbours may hold the same tensor. Temporaries of forward() are `forward` with a
// graph and `alone` without one, at their peak. For `backward` follow the gradients from the output to the input. The
// caller counts parameters with their gradients, buffers, the input, the output and the gradients of both. Without an
// override the block counts as one that keeps its input and makes an output of the same type.
// tests/numerics/memory_estimate.sh compares with the allocator's count: add a recipe with your block there.

/// One pass over a block. memory() is called in the mode (training or not), with the kernels (fused or not) and under
/// the autocast of that pass.
struct BlockPass {
  std::int64_t samples = 1;
  std::int64_t positions = 1;     ///< positions of each sample, for sequences
  std::int64_t input_bytes = 4;   ///< of one number of the input
  std::int64_t weight_bytes = 4;  ///< of one number of the weights
  bool autocast = false;          ///< matrix products in 16 bits, whatever the input
  bool channels_last = false;     ///< channels-last images
  bool for_loss = false;          ///< forward_hidden() instead of forward()

  std::int64_t product_bytes() const { return autocast ? 2 : weight_bytes; }
  double rows() const { return static_cast<double>(samples) * static_cast<double>(positions); }

  /// The same pass over `block`, with inputs of `arriving_bytes` per number.
  BlockPass over(const Block& block, std::int64_t arriving_bytes) const;
};

/// Memory of such a pass, in bytes, without what grows neither with the batch nor with the width.
struct BlockMemory {
  std::int64_t output_bytes = 4;  ///< of one number of the outputs
  bool output_is_input = false;   ///< the output is a view of the input
  bool keeps_input = true;        ///< whether the graph keeps the block's input ...
  bool keeps_output = false;      ///< ... or its output
  double kept = 0;                ///< other tensors that the graph keeps for the backward pass
  double products = 0;            ///< the part of a pass's tensors that `selective` activation checkpointing keeps
  double low_weights = 0;         ///< copies of weights in the type of the products, until the whole forward pass ends
  double steady_weights = 0;      ///< the same from the first pass to the end of the training (Bf16WeightCache)
  double forward = 0;             ///< peak beyond `kept` and weights of a pass with a graph
  double alone = 0;               ///< peak beyond weights of a pass without a graph
  double backward = 0;            ///< peak beyond `kept` of the backward pass, before the gradient of the input exists
  double backward_end = 0;        ///< the same once that gradient exists; negative if parts of `kept` are freed by then
  bool spread_gradient = false;   ///< the gradient of the input is expanded: matrix products make it contiguous
  double hidden_features = 0;     ///< of `kHidden`, if that replaces the output
};

}  // namespace components::block
