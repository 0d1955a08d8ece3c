#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "components/optimizer/grouped.h"
#include "runner/core/tensor_fwd.h"

namespace components::kernels {
struct BlockSlice;
struct TensorBlocks;
}  // namespace components::kernels

namespace components::optimizer {

/// Base of the optimizers whose state is kept in 8 bits, by blocks of 256 elements with an absmax each: a quarter of
/// the memory. Parameters of fewer than 4,096 elements keep 32 bits.
///
/// State: for each of `moments` the codes, uint8 and of the parameter's shape, and `<moment>_absmax`, float32 [blocks];
/// of a small parameter the moment itself, float32.
///
/// Source  Dettmers et al., 8-bit optimizers via block-wise quantization, arXiv:2110.02861; bitsandbytes 0.50 (block
///         and smallest size)
class EightBit : public GroupedOptimizer {
 public:
  EightBit(const Inputs& inputs, double lr, double weight_decay, const std::vector<std::string>& moments);
  ~EightBit() override;
  std::int64_t saved_bytes(std::int64_t elements) const final;
  /// A piece of the parameter goes through plain operations, on a device other than the CPU.
  std::int64_t step_bytes(std::int64_t parameter_bytes) const final;
  std::int64_t cpu_step_bytes(std::int64_t /*parameter_bytes*/) const final { return 0; }

 protected:
  /// Moves parameters with a state in 32 bits: `buffers[k]` is the k-th moment.
  virtual void update_small(const Batch& batch) = 0;
  /// Moves parameters with a state in 8 bits: `buffers[2 * k]` holds the codes of the k-th moment, `buffers[2 * k + 1]`
  /// its absmax.
  virtual void update_large(const Batch& batch) = 0;

  void update(const Batch& batch) final;
  at::Tensor new_buffer(std::size_t kind, const NamedTensor& parameter) const final;

  /// One pass over all elements: `run(slice)` for pieces of whole blocks, on all threads. The result does not depend on
  /// their number. On a device other than the CPU a piece is a kernels::TensorBlocks: `run` takes both. RunError when a
  /// parameter is not float32.
  template <typename Run>
  void for_each_blocks(const Batch& batch, const Run& run) {
    if (is_on_cpu(batch)) {
      for_each_slice_of_blocks(batch, run);
    } else {
      for_each_tensor_of_blocks(batch, run);
    }
  }

 private:
  struct Tables;

  void for_each_slice_of_blocks(const Batch& batch, const std::function<void(const kernels::BlockSlice&)>& run) const;
  void for_each_tensor_of_blocks(const Batch& batch, const std::function<void(const kernels::TensorBlocks&)>& run);

  std::size_t moments_;
  std::map<std::string, std::int64_t> whole_elements_;
  std::unique_ptr<Tables> tables_;  // on a device other than the CPU; null before its first step
};

}  // namespace components::optimizer
