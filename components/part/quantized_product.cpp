// N: rows   I: inputs   O: outputs

#include "components/part/quantized_product.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "components/kernels/transformer.h"
#include "components/ops/matmul.h"
#include "components/ops/torch_bridge.h"
#include "components/part/quantized_matrix.h"
#include "runner/core/error.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::new_tensor;

constexpr std::int64_t kPieceNumbers = 1 << 19;  ///< of W that are there at once: a cache of level 2 holds them
constexpr std::int64_t kRowsOfTask = 48;         ///< of W, for few rows of x: whole tiles of every level

std::int64_t up(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

}  // namespace

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
                            const QuantizedProduct* product, std::int64_t first, std::int64_t count) {
    context->saved_data["product"] = reinterpret_cast<std::int64_t>(product);
    context->saved_data["first"] = first;
    context->saved_data["count"] = count;
    context->saved_data["type"] = static_cast<std::int64_t>(x.scalar_type());
    return product->multiplied(x, first, count);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto* const product = reinterpret_cast<const QuantizedProduct*>(context->saved_data["product"].toInt());
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    const at::Tensor& dy = gradients[0];
    const std::int64_t first = context->saved_data["first"].toInt(), count = context->saved_data["count"].toInt();
    const at::Tensor weight = product->weight(first, count, false).to(dy.scalar_type());
    return {at::matmul(dy, weight).to(type), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor QuantizedProduct::multiplied(const at::Tensor& x, std::int64_t first, std::int64_t count) const {
  if (!rounds_input()) return at::linear(x, weight(first, count, false).to(x.scalar_type()));
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = count;
  return int8_rows(x.reshape({-1, in_}), first, count).view(sizes).to(x.scalar_type());
}

QuantizedProduct::QuantizedProduct(QuantizedForm form, std::int64_t out, std::int64_t in, bool on_meta)
    : form_(std::move(form)), out_(out), in_(in) {
  RUNNER_ASSERT(form_.kind == QuantizedForm::Kind::kInt8 || in % 2 == 0, "rows of whole bytes in 4 bits");
  for (const std::int64_t rows : form_.rows) matrices_.push_back(make_quantized_matrix(form_, rows, in, on_meta));
}

QuantizedProduct::~QuantizedProduct() = default;

const at::Tensor& QuantizedProduct::parameter() const {
  static const at::Tensor none;
  return none;
}

std::pair<const void*, std::uint32_t> QuantizedProduct::version() const {
  const at::Tensor& codes = matrices_.front()->codes();
  return {fills_ == 0 || codes.is_meta() ? nullptr : codes.const_data_ptr(), fills_};
}

std::int64_t QuantizedProduct::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& matrix : matrices_) bytes += matrix->bytes();
  return bytes;
}

void QuantizedProduct::fill(const at::Tensor& weight_OI) {
  std::int64_t first = 0;
  for (const auto& matrix : matrices_) {
    matrix->fill(weight_OI.narrow(0, first, matrix->rows()).to(at::kFloat).contiguous());
    first += matrix->rows();
  }
  ++fills_;
}

void QuantizedProduct::fill(const std::vector<const runner::pretrained::PackedWeight*>& layers) {
  RUNNER_ASSERT(layers.size() == matrices_.size(), "each layer has a weight");
  for (std::size_t i = 0; i < layers.size(); ++i) matrices_[i]->fill(*layers[i]);
  ++fills_;
}

void QuantizedProduct::move_to(const c10::Device& device) {
  for (const auto& matrix : matrices_) matrix->move_to(device);
}

at::Tensor QuantizedProduct::as_input(const at::Tensor& x) const {
  return x.scalar_type() == at::kBFloat16 ? x : x.to(at::kFloat);
}

at::Tensor QuantizedProduct::forward(const at::Tensor& x, const at::Tensor& bias) const {
  const at::Tensor y = forward_rows(x, 0, out_);
  return bias.defined() ? y + bias.to(y.scalar_type()) : y;
}

at::Tensor QuantizedProduct::forward_rows(const at::Tensor& x, std::int64_t first, std::int64_t count) const {
  return Plain::apply(x, this, first, count);
}

template <typename F>
void QuantizedProduct::for_pieces(bool bf16, const F& f) const {
  const std::int64_t rows_max = std::max<std::int64_t>(kRowsOfTask, kPieceNumbers / in_ / kRowsOfTask * kRowsOfTask);
  const std::int64_t most = std::min(rows_max, *std::max_element(form_.rows.begin(), form_.rows.end()));
  const at::Tensor memory = bf16 ? new_tensor<Bf16>({most, in_}) : new_tensor<float>({most, in_});
  std::int64_t before = 0;
  for (const auto& one : matrices_) {
    const QuantizedMatrix& matrix = *one;
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
  if (rounds_input()) {
    const at::Tensor y = int8_rows(x_NI, 0, out_);
    y_NO = bf16 ? kernels::lowered<Bf16>(y) : y;
    return with_backward ? std::make_unique<Backward>(*this) : nullptr;
  }
  y_NO = bf16 ? new_tensor<Bf16>({x_NI.size(0), out_}) : new_tensor<float>({x_NI.size(0), out_});
  for_pieces(bf16, [&](std::int64_t first, const at::Tensor& piece) {
    matmul_into(y_NO.narrow(1, first, piece.size(0)), x_NI, piece.t(), /*add=*/false);
  });
  return with_backward ? std::make_unique<Backward>(*this) : nullptr;
}

at::Tensor QuantizedProduct::int8_rows(const at::Tensor& x_NI, std::int64_t first, std::int64_t count) const {
  std::vector<at::Tensor> all;
  std::int64_t before = 0;
  for (const auto& matrix : matrices_) {
    if (before >= first && before < first + count) all.push_back(int8_products(x_NI, *matrix, form_.threshold));
    before += matrix->rows();
  }
  return all.size() == 1 ? all.front() : at::cat(all, 1);
}

at::Tensor QuantizedProduct::rows(const at::Tensor& x_NI) const {
  if (rounds_input()) return int8_rows(x_NI, 0, out_).contiguous();
  const at::Tensor y_NO = new_tensor<float>({x_NI.size(0), out_});
  const auto multiply = [&]<typename T>(const QuantizedMatrix& matrix, std::int64_t before, T*) {
    kernels::parallel_for_rows(up(matrix.rows(), kRowsOfTask), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      std::vector<T> piece;
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task * kRowsOfTask, count = std::min(kRowsOfTask, matrix.rows() - first);
        float* const y = data<float>(y_NO) + before + first;
        if (matrix.multiply(data<T>(x_NI), x_NI.size(0), first, count, y, out_)) continue;
        piece.resize(static_cast<std::size_t>(kRowsOfTask * in_));
        matrix.read(first, count, piece.data());
        kernels::transformer<T>().dots({data<T>(x_NI), in_, piece.data(), in_, y, out_, x_NI.size(0), count, in_});
      }
    });
  };
  std::int64_t before = 0;
  for (const auto& one : matrices_) {
    const QuantizedMatrix& matrix = *one;
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
  for (const auto& one : matrices_) {
    const QuantizedMatrix& matrix = *one;
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
