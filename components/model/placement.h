#pragma once

#include <c10/core/Device.h>

#include <cstddef>

namespace components::model {

/// Where the blocks of a model compute, and where the weights of some of them are when they do not: in the memory of
/// the CPU, or in their files. Blocks are counted in the model's order.
class Placement {
 public:
  virtual ~Placement() = default;
  /// The device that a block computes on: its inputs come there.
  virtual c10::Device device_of(std::size_t block) const = 0;
  /// The device that batches come to, and the model's outputs.
  virtual c10::Device main_device() const = 0;
  /// Around each pass of a block, and around its backward pass: its weights are there in between. One may begin in
  /// another of the same block.
  virtual void enter(std::size_t block) = 0;
  virtual void leave(std::size_t block) = 0;
  /// Leaves it when another one is entered: what the loss reads of it is there until then.
  virtual void linger(std::size_t block) = 0;
};

}  // namespace components::model
