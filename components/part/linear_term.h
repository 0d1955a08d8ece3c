#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace components::part {

/// The derivative of one LinearTerm::add_to.
class LinearTermBackward {
 public:
  virtual ~LinearTermBackward() = default;

  /// Whether the term also multiplied what it was added to: then the gradient of x W^T is another one than that of y.
  virtual bool scales() const { return false; }
  /// Where it did: changes dy [N, out], a copy of the gradient of y, in place into that of x W^T. Called first.
  virtual void to_product(const at::Tensor& dy_NO);

  /// dy [N, out], as to_product() has left it, and x [N, in] in the type of the products, x as add_to() has read it.
  /// Adds to dx [N, in], of the same type, where that is defined. Returns the gradients of the term's tensors, float32,
  /// in their order. Runs once.
  virtual std::vector<at::Tensor> backward(const at::Tensor& dy_NO, const at::Tensor& x_NI,
                                           const at::Tensor& dx_NI) = 0;
};

/// What a Linear adds to its product, beside the bias: an adapter. It has trained tensors of its own and changes all of
/// the layer's outputs or a range of them, which it may also multiply. Each of the ways to compute a linear layer has
/// its method here; they agree but for rounding, and dropout leaves out the same elements on each way.
class LinearTerm {
 public:
  virtual ~LinearTerm() = default;

  /// Its trained tensors under their full names, in a fixed order.
  virtual const std::vector<NamedTensor>& tensors() const = 0;
  /// Whether it also reads the layer's weight by itself, at full precision.
  virtual bool reads_weight() const { return false; }
  virtual void set_training(bool training) = 0;

  /// By LibTorch's operations: adds to y [..., out] with its bias, which nothing else has read. x [..., in]
  virtual void add(const at::Tensor& y, const at::Tensor& x) const = 0;

  /// In a node of the graph, below autograd: adds to y [N, out] without its bias. x [N, in] and y are in the type of
  /// the products, float32 or bfloat16, on the CPU.
  virtual std::unique_ptr<LinearTermBackward> add_to(const at::Tensor& y_NO, const at::Tensor& x_NI) const = 0;

  /// For generation: adds to y [N, out] float32; a row's result does not depend on the other rows. x [N, in] float32 or
  /// bfloat16, the type of the products.
  virtual void add_rows(const at::Tensor& y_NO, const at::Tensor& x_NI) const = 0;
};

/// Whether a parameter of that name belongs to a LinearTerm. It is called after the layer: `h.0.attn_qkv.q_proj` has
/// `h.0.attn_qkv.q_proj.lora_A.weight`, `h.0.attn_qkv.q_proj.lora_B.weight` and of DoRA
/// `h.0.attn_qkv.q_proj.lora_magnitude_vector`; of an adapter with a name `...lora_A.NAME.weight` and so on.
bool is_of_term(std::string_view name);

}  // namespace components::part
