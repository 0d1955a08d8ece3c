#pragma once

#include <cstdint>

namespace components::block {

class Block;

// What a block says of the memory that it takes, so that `roux plan` can add up a training before anything is
// allocated.
//
// To an author of a block: override Block::memory() and look at forward() line by line. A tensor that autograd, or a
// node of your own, saves for the backward pass belongs to `kept`; where it is the input or the output, say
// `keeps_input` or `keeps_output` instead, because neighbours may hold the same tensor. What forward() makes and drops
// is `forward` with a graph and `alone` without one, at their highest. For `backward` follow the gradients from the
// output to the input. Parameters with their gradients, buffers, the input, the output and the gradients of both are
// counted by whoever asks. Say nothing, and the block counts as one that keeps its input and makes an output of the
// same type. tests/numerics/memory_estimate.sh compares with the allocator's count: add a recipe with your block there.

/// One pass over a block. memory() is asked in the mode (training or not), with the kernels (fused or not) and under
/// the autocast of that pass.
struct BlockPass {
  std::int64_t samples = 1;
  std::int64_t positions = 1;     ///< of each sample, where they are sequences
  std::int64_t input_bytes = 4;   ///< of one number of what arrives
  std::int64_t weight_bytes = 4;  ///< of one number of the weights
  bool autocast = false;          ///< products in 16 bits, whatever arrives
  bool channels_last = false;     ///< images with the channels of a pixel side by side
  bool for_loss = false;          ///< forward_hidden() in place of forward()

  std::int64_t product_bytes() const { return autocast ? 2 : weight_bytes; }
  double rows() const { return static_cast<double>(samples) * static_cast<double>(positions); }

  /// The same pass over `block`, to which numbers of `arriving_bytes` come.
  BlockPass over(const Block& block, std::int64_t arriving_bytes) const;
};

/// What such a pass takes, in bytes. What grows neither with the batch nor with the width is left out.
struct BlockMemory {
  std::int64_t output_bytes = 4;  ///< of one number of the outputs
  bool output_is_input = false;   ///< the output is the input seen in another way
  bool keeps_input = true;        ///< whether the graph keeps what the block was given ...
  bool keeps_output = false;      ///< ... or what it gives
  double kept = 0;                ///< what else the graph keeps from the forward pass to the backward pass
  double products = 0;            ///< the part of a pass's tensors that `selective` activation checkpointing keeps
  double low_weights = 0;         ///< copies of weights in the type of the products, until the whole forward pass ends
  double steady_weights = 0;      ///< the same from the first pass to the end of the training (Bf16WeightCache)
  double forward = 0;             ///< at its most, beyond `kept` and weights, while a pass with a graph runs
  double alone = 0;               ///< at its most, beyond weights, while a pass without a graph runs
  double backward =
      0;  ///< at its most, beyond `kept`, while the backward pass runs and has no gradient of the input yet
  double backward_end = 0;  ///< the same once that gradient is there; negative where parts of `kept` are gone by then
  bool spread_gradient = false;  ///< the gradient of the input is one number for many: products copy it into order
  double hidden_features = 0;    ///< of `kHidden`, where that was left instead of an output
};

}  // namespace components::block
