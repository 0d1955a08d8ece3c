#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace c10 {
struct Device;
}

namespace runner::pretrained {
struct PackedWeight;
}

namespace components::part {

/// What the backward pass of Product::in_node() needs of the forward pass. It runs once.
class ProductBackward {
 public:
  virtual ~ProductBackward() = default;

  /// dy W, [N, I] in the type of dy.
  virtual at::Tensor to_input(const at::Tensor& dy_NO) const = 0;
  /// dy^T x, the gradient of the parameter in its type. Only where that wants one.
  virtual at::Tensor to_weight(const at::Tensor& dy_NO, const at::Tensor& x_NI) const = 0;
};

/// `x W^T` with the weight W [O, I] of a linear layer, whatever form it is kept in. Each of the ways to compute a
/// linear layer has its method here; they agree but for rounding.
///
/// Products have one of two types, float32 and bfloat16: that of x. Sums are float32.
class Product {
 public:
  virtual ~Product() = default;

  virtual std::int64_t in() const = 0;
  virtual std::int64_t out() const = 0;
  /// The block's parameter, an input of each node that multiplies by it; undefined for a quantised weight, which is
  /// none.
  virtual const at::Tensor& parameter() const = 0;
  /// Where W lies, and how often it was written to; an address of null: it has no memory here.
  virtual std::pair<const void*, std::uint32_t> version() const = 0;

  /// By LibTorch's operations, x [..., I] and bias [O] or undefined to [..., O].
  virtual at::Tensor forward(const at::Tensor& x, const at::Tensor& bias) const = 0;
  /// x in the type that forward() multiplies in without autocast.
  virtual at::Tensor as_input(const at::Tensor& x) const = 0;

  /// Whether in_node() has products of that type for this weight.
  virtual bool fits_nodes(bool bf16) const = 0;
  /// In a node of the graph, below autograd and on the CPU: sets y [N, O], in the type of x [N, I]. Null without
  /// `with_backward`.
  virtual std::unique_ptr<ProductBackward> in_node(const at::Tensor& x_NI, at::Tensor& y_NO,
                                                   bool with_backward) const = 0;

  /// Whether rows() has this weight.
  virtual bool fits_rows() const = 0;
  /// Whether rows() is to be given bfloat16, in a pass whose products are in bfloat16 or not.
  virtual bool rows_in_bf16(bool of_pass) const = 0;
  /// For generation on the CPU: [N, O] float32; a row's result does not depend on the other rows.
  virtual at::Tensor rows(const at::Tensor& x_NI) const = 0;

  /// Rows [first, first + count) of W as products of that type read them: a view or a copy.
  virtual at::Tensor weight(std::int64_t first, std::int64_t count, bool bf16) const = 0;

  virtual void set_training(bool /*training*/) {}
  /// Whether W is kept in fewer than 16 bits, and is no parameter.
  virtual bool is_quantized() const { return false; }
  virtual std::int64_t bytes() const = 0;  ///< that W takes
  /// Of a quantised one: takes W [O, I], float32 or bfloat16 on the CPU.
  virtual void fill(const at::Tensor& weight_OI);
  /// The same from a file that has them so, of each of the joined layers one, in its form.
  virtual void fill(const std::vector<const runner::pretrained::PackedWeight*>& layers);
  /// Of a quantised one: a parameter is moved by whoever owns it.
  virtual void move_to(const c10::Device& /*device*/) {}
};

}  // namespace components::part
