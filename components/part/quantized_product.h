#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "components/part/product.h"
#include "components/quantization/form.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

/// How the weight of a linear layer is kept in fewer than 16 bits.
struct QuantizedForm {
  using Kind = quantization::Kind;
  Kind kind = Kind::kNf4;
  bool double_quant = false;       ///< of 4 bits: the scales of blocks are in 8 bits as well
  double threshold = 0.0;          ///< of 8 bits: columns of x with a larger number keep their precision; 0: none do
  std::vector<std::int64_t> rows;  ///< of the layers that are joined in it, each quantised by itself
};

class QuantizedMatrix;

/// A product with a frozen weight in 4 or 8 bits, in bitsandbytes' forms: nothing keeps it in another one. What is
/// multiplied is made from it in pieces that a cache holds. Outside of a training x is rounded to 8 bits beside a
/// weight in 8 bits, as LLM.int8() does; in one it is not, as bitsandbytes has it on CPUs.
///
/// Source  Dettmers et al. 2022, LLM.int8(); Dettmers et al. 2023, QLoRA; bitsandbytes 0.50
class QuantizedProduct final : public Product {
 public:
  /// Without numbers, which fill() gives it. `on_meta`: never.
  QuantizedProduct(QuantizedForm form, std::int64_t out, std::int64_t in, bool on_meta);
  ~QuantizedProduct() override;

  std::int64_t in() const override { return in_; }
  std::int64_t out() const override { return out_; }
  const at::Tensor& parameter() const override;
  std::pair<const void*, std::uint32_t> version() const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& bias) const override;
  at::Tensor as_input(const at::Tensor& x) const override;
  bool fits_nodes(bool) const override { return true; }
  std::unique_ptr<ProductBackward> in_node(const at::Tensor& x_NI, at::Tensor& y_NO, bool with_backward) const override;
  bool fits_rows() const override { return true; }
  bool rows_in_bf16(bool of_pass) const override { return of_pass; }
  at::Tensor rows(const at::Tensor& x_NI) const override;
  at::Tensor weight(std::int64_t first, std::int64_t count, bool bf16) const override;

  const QuantizedForm& form() const { return form_; }
  /// forward() without bias, below autograd.
  at::Tensor multiplied(const at::Tensor& x) const;

  void set_training(bool training) override { is_training_ = training; }
  bool is_quantized() const override { return true; }
  std::int64_t bytes() const override;
  void fill(const at::Tensor& weight_OI) override;
  void fill(const std::vector<const runner::pretrained::PackedWeight*>& layers) override;
  void move_to(const c10::Device& device) override;

 private:
  class Backward;

  bool rounds_input() const { return form_.kind == QuantizedForm::Kind::kInt8 && !is_training_; }
  at::Tensor int8_rows(const at::Tensor& x_NI) const;  ///< of 8 bits: [N, O] float32

  /// Calls `f(first, piece)` for pieces [rows, I] of W from its row `first` on, in the type of products, one after the
  /// other in the same memory.
  template <typename F>
  void for_pieces(bool bf16, const F& f) const;

  QuantizedForm form_;
  std::int64_t out_, in_;
  std::vector<std::unique_ptr<QuantizedMatrix>> matrices_;  ///< of the joined layers
  std::uint32_t fills_ = 0;
  bool is_training_ = true;
};

}  // namespace components::part
