#pragma once

#include <cstddef>
#include <vector>

#include "components/block/memory.h"

namespace components::block {

/// Memory of consecutive passes within one block.
class PartsMemory {
 public:
  /// input_bytes: of the first part's whole input.
  explicit PartsMemory(double input_bytes) : activations_{{input_bytes, 0, false}} {}

  /// The next part, with `output_bytes` of output from the previous part's output.
  void add(const BlockMemory& part, double output_bytes);
  BlockMemory whole() const;

 private:
  /// The tensor between two parts.
  struct Activation {
    double bytes;
    std::size_t storage;  ///< the activation that it is a view of; else itself
    bool kept;            ///< whether the graph does; of the storage
  };

  bool is_inside(std::size_t i) const;
  /// Bytes of the activation, unless a neighbour of the block counts them already.
  double inside(std::size_t i) const { return is_inside(i) ? activations_[i].bytes : 0.0; }
  /// What the graph keeps of the parts up to this one.
  double kept_up_to(std::size_t part) const;
  /// Bytes of the block's output, once it is there.
  double output_after(std::size_t part) const;
  double forward_peak() const;
  double alone_peak() const;

  std::vector<BlockMemory> parts_;
  std::vector<Activation> activations_;  // one more than parts
};

}  // namespace components::block
