#pragma once

#include <cstdint>

#include "components/kernels/transformer.h"
#include "runner/core/tensor_fwd.h"

namespace components {

/// The dropout masks of one pass over a block. They are functions of one number, drawn from LibTorch's generator, so a
/// resume and a repeated pass get the same ones with any number of threads, and none is kept for the backward pass.
/// Plain operations and fused kernels drop the same elements. On a device other than the CPU they are drawn from its
/// own generator, in the order of the calls, and the CPU's stays as it is: a graph of the device repeats no draw of it.
class Dropout {
 public:
  /// Of the pass that reads `x`, which draws its number where roux's own kernels can read that. p in [0, 1): the
  /// fraction that is dropped.
  Dropout(double p, const at::Tensor& x);

  /// The same masks for a part that drops another fraction.
  Dropout with_rate(double p) const;
  /// The same masks for matrices that hold some rows only: row i is row `rows[i]` of the whole. `rows` outlives them.
  Dropout of_rows(const std::int64_t* rows) const;

  /// Mask `number` of this pass, for kernels that can read its `x`.
  kernels::DropMask mask(std::uint32_t number) const;
  /// That mask's factors for `x`, in x's type; the last dimension is its columns, all others together its rows.
  at::Tensor factors_like(const at::Tensor& x, std::uint32_t number) const;

 private:
  double p_;
  kernels::DropMask mask_;
};

}  // namespace components
