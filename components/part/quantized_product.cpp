// N: rows   I: inputs   O: outputs

#include "components/part/quantized_product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "components/kernels/block_codes.h"
#include "components/kernels/four_bit.h"
#include "components/kernels/transformer.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "components/quantization/blockwise.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;

constexpr std::int64_t kPieceNumbers = 1 << 19;  ///< of W that are there at once: a cache of level 2 holds them
constexpr std::int64_t kRowsOfTask = 48;         ///< of W, for few rows of x: whole tiles of every level

std::int64_t up(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

const kernels::FourBitTable& table_of(QuantizedForm::Kind kind) {
  return kind == QuantizedForm::Kind::kNf4 ? kernels::kNf4 : kernels::kFp4;
}

at::Tensor empty(std::int64_t count, at::ScalarType type, bool on_meta) {
  return at::empty({count}, at::TensorOptions().dtype(type).device(on_meta ? at::kMeta : at::kCPU));
}

at::Tensor values_on(const float* values, std::int64_t count, const at::Device& device) {
  at::Tensor copy = at::empty({count}, at::TensorOptions().dtype(at::kFloat));
  std::copy(values, values + count, copy.mutable_data_ptr<float>());
  return copy.to(device);
}

}  // namespace

/// In 4 bits, blocks of the numbers of all rows, one row behind the other.
class QuantizedProduct::Matrix {
 public:
  Matrix(const QuantizedForm& form, std::int64_t rows, std::int64_t in, bool on_meta)
      : kind_(form.kind), rows_(rows), in_(in), codes_(empty(up(rows * in, 2), at::kByte, on_meta)) {
    const std::int64_t blocks = up(rows * in, kBlockOfFourBits);
    if (form.double_quant) {
      scale_codes_ = empty(blocks, at::kByte, on_meta);
      scales_ = empty(up(blocks, quantization::kNestedBlock), at::kFloat, on_meta);
    } else {
      scales_ = empty(blocks, at::kFloat, on_meta);
    }
  }

  std::int64_t rows() const { return rows_; }
  const at::Tensor& codes() const { return codes_; }
  std::int64_t bytes() const {
    const std::size_t offset = scale_codes_.defined() ? sizeof(float) : 0;
    return static_cast<std::int64_t>(codes_.nbytes() + scales_.nbytes() +
                                     (scale_codes_.defined() ? scale_codes_.nbytes() : 0) + offset);
  }

  /// [rows, I] float32
  void fill(const at::Tensor& numbers) {
    const at::Device device = codes_.device();
    move_to(at::kCPU);
    const auto count = static_cast<std::size_t>(rows_ * in_),
               blocks = static_cast<std::size_t>(up(rows_ * in_, kBlockOfFourBits));
    std::vector<float> scales(blocks);
    quantization::quantize_four_bit(std::span(data<float>(numbers), count), kBlockOfFourBits, table_of(kind_),
                                    std::span(codes_.mutable_data_ptr<std::uint8_t>(), (count + 1) / 2), scales);
    if (scale_codes_.defined()) {
      const quantization::NestedAbsmax nested = quantization::nest(scales);
      std::copy(nested.codes.begin(), nested.codes.end(), scale_codes_.mutable_data_ptr<std::uint8_t>());
      scales = nested.absmax;
      offset_ = nested.offset;
    }
    std::copy(scales.begin(), scales.end(), data<float>(scales_));
    move_to(device);
  }

  void move_to(const at::Device& device) {
    if (codes_.is_meta()) return;
    for (at::Tensor* tensor : {&codes_, &scale_codes_, &scales_}) {
      if (tensor->defined()) *tensor = tensor->to(device);
    }
  }

  /// Rows [first, first + count) into [count, I], on the CPU.
  template <typename T>
  void read(std::int64_t first, std::int64_t count, T* out) const {
    const std::int64_t begin = first * in_, size = count * in_;
    const std::int64_t of_first = begin / kBlockOfFourBits, last = up(begin + size, kBlockOfFourBits);
    const float* scales = scales_.const_data_ptr<float>() + (scale_codes_.defined() ? 0 : of_first);
    std::vector<float> own;
    if (scale_codes_.defined()) {
      const auto* const codes = scale_codes_.const_data_ptr<std::uint8_t>();
      for (std::int64_t i = of_first; i < last; ++i) {
        own.push_back(kernels::kSignedCodes.values.data()[codes[i]] * scales[i / quantization::kNestedBlock] + offset_);
      }
      scales = own.data();
    }
    kernels::dequantize_four_bit(codes_.const_data_ptr<std::uint8_t>() + of_first * kBlockOfFourBits / 2, scales,
                                 begin - of_first * kBlockOfFourBits, size, kBlockOfFourBits, table_of(kind_), out);
  }

  /// All rows by LibTorch's operations, float32, wherever they lie.
  at::Tensor read_all() const {
    const at::Device device = codes_.device();
    const at::Tensor table = values_on(table_of(kind_).values.data(), 16, device);
    const at::Tensor both = at::stack({codes_.bitwise_right_shift(4), codes_.bitwise_and(15)}, 1).flatten();
    at::Tensor scales = scales_;
    if (scale_codes_.defined()) {
      const at::Tensor of_scales = values_on(kernels::kSignedCodes.values.data(), kernels::kCodes, device);
      const std::int64_t blocks = scale_codes_.size(0);
      scales = of_scales.index_select(0, scale_codes_.to(at::kLong)) *
                   scales_.repeat_interleave(quantization::kNestedBlock).narrow(0, 0, blocks) +
               offset_;
    }
    const std::int64_t all = rows_ * in_;
    const at::Tensor numbers = table.index_select(0, both.narrow(0, 0, all).to(at::kLong)) *
                               scales.repeat_interleave(kBlockOfFourBits).narrow(0, 0, all);
    return numbers.view({rows_, in_});
  }

 private:
  QuantizedForm::Kind kind_;
  std::int64_t rows_, in_;
  at::Tensor codes_;        // two in a byte
  at::Tensor scale_codes_;  // of blocks, where those are quantised as well
  at::Tensor scales_;       // of blocks; else of blocks of these
  float offset_ = 0;        // the mean of the scales
};

/// Below autograd: the gradient of x alone, as W is frozen.
class QuantizedProduct::Backward final : public ProductBackward {
 public:
  explicit Backward(const QuantizedProduct& product) : product_(product) {}

  at::Tensor to_input(const at::Tensor& dy_NO) const override {
    const bool bf16 = dy_NO.scalar_type() == at::kBFloat16;
    const at::Tensor dx_NI = new_tensor<float>({dy_NO.size(0), product_.in()});
    product_.for_pieces(bf16, [&](std::int64_t first, const at::Tensor& piece) {
      matmul_into(dx_NI, dy_NO.narrow(1, first, piece.size(0)), piece, /*add=*/first > 0);
    });
    return bf16 ? kernels::lowered<Bf16>(dx_NI) : dx_NI;
  }

  at::Tensor to_weight(const at::Tensor&, const at::Tensor&) const override {
    RUNNER_ASSERT(false, "a quantised weight is not trained");
  }

 private:
  const QuantizedProduct& product_;
};

namespace {

/// By LibTorch's operations. W is made again for the backward pass.
class Plain final : public torch::autograd::Function<Plain> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const QuantizedProduct* product) {
    context->saved_data["product"] = reinterpret_cast<std::int64_t>(product);
    context->saved_data["type"] = static_cast<std::int64_t>(x.scalar_type());
    return at::linear(x, product->weight(0, product->out(), false).to(x.scalar_type()));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto* const product = reinterpret_cast<const QuantizedProduct*>(context->saved_data["product"].toInt());
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    const at::Tensor& dy = gradients[0];
    const at::Tensor weight = product->weight(0, product->out(), false).to(dy.scalar_type());
    return {at::matmul(dy, weight).to(type), at::Tensor()};
  }
};

}  // namespace

QuantizedProduct::QuantizedProduct(QuantizedForm form, std::int64_t out, std::int64_t in, bool on_meta)
    : form_(std::move(form)), out_(out), in_(in) {
  RUNNER_ASSERT(form_.kind != QuantizedForm::Kind::kInt8 && in % 2 == 0, "rows of whole bytes in 4 bits");
  for (const std::int64_t rows : form_.rows) matrices_.emplace_back(form_, rows, in, on_meta);
}

QuantizedProduct::~QuantizedProduct() = default;

const at::Tensor& QuantizedProduct::parameter() const {
  static const at::Tensor none;
  return none;
}

std::pair<const void*, std::uint32_t> QuantizedProduct::version() const {
  const at::Tensor& codes = matrices_.front().codes();
  return {fills_ == 0 || codes.is_meta() ? nullptr : codes.const_data_ptr(), fills_};
}

std::int64_t QuantizedProduct::bytes() const {
  std::int64_t bytes = 0;
  for (const Matrix& matrix : matrices_) bytes += matrix.bytes();
  return bytes;
}

void QuantizedProduct::fill(const at::Tensor& weight_OI) {
  std::int64_t first = 0;
  for (Matrix& matrix : matrices_) {
    matrix.fill(weight_OI.narrow(0, first, matrix.rows()).to(at::kFloat).contiguous());
    first += matrix.rows();
  }
  ++fills_;
}

void QuantizedProduct::move_to(const c10::Device& device) {
  for (Matrix& matrix : matrices_) matrix.move_to(device);
}

at::Tensor QuantizedProduct::as_input(const at::Tensor& x) const {
  return x.scalar_type() == at::kBFloat16 ? x : x.to(at::kFloat);
}

at::Tensor QuantizedProduct::forward(const at::Tensor& x, const at::Tensor& bias) const {
  const at::Tensor y = Plain::apply(x, this);
  return bias.defined() ? y + bias.to(y.scalar_type()) : y;
}

template <typename F>
void QuantizedProduct::for_pieces(bool bf16, const F& f) const {
  const std::int64_t rows_max = std::max<std::int64_t>(kRowsOfTask, kPieceNumbers / in_ / kRowsOfTask * kRowsOfTask);
  const std::int64_t most = std::min(rows_max, *std::max_element(form_.rows.begin(), form_.rows.end()));
  const at::Tensor memory = bf16 ? new_tensor<Bf16>({most, in_}) : new_tensor<float>({most, in_});
  std::int64_t before = 0;
  for (const Matrix& matrix : matrices_) {
    for (std::int64_t first = 0; first < matrix.rows(); first += most) {
      const at::Tensor piece = memory.narrow(0, 0, std::min(most, matrix.rows() - first));
      kernels::parallel_for_rows(piece.size(0), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        if (bf16) {
          matrix.read(first + begin, end - begin, data<Bf16>(piece) + begin * in_);
        } else {
          matrix.read(first + begin, end - begin, data<float>(piece) + begin * in_);
        }
      });
      f(before + first, piece);
    }
    before += matrix.rows();
  }
}

std::unique_ptr<ProductBackward> QuantizedProduct::in_node(const at::Tensor& x_NI, at::Tensor& y_NO,
                                                           bool with_backward) const {
  const bool bf16 = x_NI.scalar_type() == at::kBFloat16;
  y_NO = bf16 ? new_tensor<Bf16>({x_NI.size(0), out_}) : new_tensor<float>({x_NI.size(0), out_});
  for_pieces(bf16, [&](std::int64_t first, const at::Tensor& piece) {
    matmul_into(y_NO.narrow(1, first, piece.size(0)), x_NI, piece.t(), /*add=*/false);
  });
  return with_backward ? std::make_unique<Backward>(*this) : nullptr;
}

at::Tensor QuantizedProduct::rows(const at::Tensor& x_NI) const {
  const at::Tensor y_NO = new_tensor<float>({x_NI.size(0), out_});
  const auto multiply = [&]<typename T>(const Matrix& matrix, std::int64_t before, T*) {
    kernels::parallel_for_rows(up(matrix.rows(), kRowsOfTask), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      std::vector<T> piece(static_cast<std::size_t>(kRowsOfTask * in_));
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task * kRowsOfTask, count = std::min(kRowsOfTask, matrix.rows() - first);
        matrix.read(first, count, piece.data());
        kernels::transformer<T>().dots({data<T>(x_NI), in_, piece.data(), in_, data<float>(y_NO) + before + first, out_,
                                        x_NI.size(0), count, in_});
      }
    });
  };
  std::int64_t before = 0;
  for (const Matrix& matrix : matrices_) {
    if (x_NI.scalar_type() == at::kBFloat16) {
      multiply(matrix, before, static_cast<Bf16*>(nullptr));
    } else {
      multiply(matrix, before, static_cast<float*>(nullptr));
    }
    before += matrix.rows();
  }
  return y_NO;
}

at::Tensor QuantizedProduct::weight(std::int64_t first, std::int64_t count, bool bf16) const {
  std::vector<at::Tensor> all;
  std::int64_t before = 0;
  for (const Matrix& matrix : matrices_) {
    const std::int64_t begin = std::max(first, before), end = std::min(first + count, before + matrix.rows());
    if (begin < end) {
      if (matrix.codes().is_cpu()) {
        at::Tensor piece = at::empty({end - begin, in_}, at::TensorOptions().dtype(bf16 ? at::kBFloat16 : at::kFloat));
        kernels::parallel_for_rows(end - begin, [&](std::int64_t, std::int64_t from, std::int64_t to) {
          if (bf16) {
            matrix.read(begin - before + from, to - from, data<Bf16>(piece) + from * in_);
          } else {
            matrix.read(begin - before + from, to - from, data<float>(piece) + from * in_);
          }
        });
        all.push_back(std::move(piece));
      } else {
        const at::Tensor rows = matrix.read_all().narrow(0, begin - before, end - begin);
        all.push_back(bf16 ? rows.to(at::kBFloat16) : rows);
      }
    }
    before += matrix.rows();
  }
  return all.size() == 1 ? all.front() : at::cat(all, 0);
}

}  // namespace components::part
