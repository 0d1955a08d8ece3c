// N: rows   R: rows of a matrix   I: inputs   K: columns that are left out

#include "components/part/quantized_matrix.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_int_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "components/kernels/block_codes.h"
#include "components/kernels/four_bit.h"
#include "components/kernels/int8_dots.h"
#include "components/ops/torch_bridge.h"
#include "components/quantization/blockwise.h"
#include "components/quantization/int8_rows.h"
#include "runner/core/error.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using quantization::kBlockOfFourBits;
static_assert(kernels::CodedDots<float>::kBlock == quantization::kBlockOfFourBits);
using quantization::table_of;
using runner::pretrained::PackedWeight;

constexpr float kMost = 127.0F;                ///< of 8 bits
constexpr std::size_t kGrainNumbers = 32'768;  ///< of a thread: some ten microseconds

std::int64_t up(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

/// `run(first, last)` for pieces of `count` things, by all threads; each makes the same of it as one does of all.
template <typename Run>
void for_each_piece(std::size_t count, std::size_t grain, const Run& run) {
  at::parallel_for(0, static_cast<std::int64_t>(count), std::max<std::int64_t>(1, static_cast<std::int64_t>(grain)),
                   [&](std::int64_t first, std::int64_t last) {
                     run(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
                   });
}

at::Tensor empty(std::int64_t count, at::ScalarType type, bool on_meta) {
  return at::empty({count}, at::TensorOptions().dtype(type).device(on_meta ? at::kMeta : at::kCPU));
}

std::span<char> bytes_of(const at::Tensor& tensor) {
  return {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

at::Tensor values_on(const float* values, std::int64_t count, const at::Device& device) {
  at::Tensor copy = at::empty({count}, at::TensorOptions().dtype(at::kFloat));
  std::copy(values, values + count, copy.mutable_data_ptr<float>());
  return copy.to(device);
}

/// In 4 bits, blocks of the numbers of all rows, one row behind the other.
class FourBits final : public QuantizedMatrix {
 public:
  FourBits(const QuantizedForm& form, std::int64_t rows, std::int64_t in, bool on_meta)
      : kind_(form.kind), rows_(rows), in_(in), codes_(empty(up(rows * in, 2), at::kByte, on_meta)) {
    const std::int64_t blocks = up(rows * in, kBlockOfFourBits);
    if (form.double_quant) {
      scale_codes_ = empty(blocks, at::kByte, on_meta);
      scales_ = empty(up(blocks, quantization::kNestedBlock), at::kFloat, on_meta);
    } else {
      scales_ = empty(blocks, at::kFloat, on_meta);
    }
  }

  std::int64_t rows() const override { return rows_; }
  const at::Tensor& codes() const override { return codes_; }
  std::int64_t bytes() const override {
    const std::size_t offset = scale_codes_.defined() ? sizeof(float) : 0;
    return static_cast<std::int64_t>(codes_.nbytes() + scales_.nbytes() +
                                     (scale_codes_.defined() ? scale_codes_.nbytes() : 0) + offset);
  }

  void fill(const at::Tensor& numbers) override {
    const at::Device device = codes_.device();
    move_to(at::kCPU);
    const auto count = static_cast<std::size_t>(rows_ * in_),
               blocks = static_cast<std::size_t>(up(rows_ * in_, kBlockOfFourBits));
    std::vector<float> scales(blocks);
    const std::span<const float> all(data<float>(numbers), count);
    const std::span<std::uint8_t> codes(codes_.mutable_data_ptr<std::uint8_t>(), (count + 1) / 2);
    constexpr auto kBlock = static_cast<std::size_t>(kBlockOfFourBits);
    for_each_piece(blocks, kGrainNumbers / kBlock, [&](std::size_t first, std::size_t last) {
      const std::size_t begin = first * kBlock, size = std::min(count, last * kBlock) - begin;
      quantization::quantize_four_bit(all.subspan(begin, size), kBlockOfFourBits, table_of(kind_),
                                      codes.subspan(begin / 2, (size + 1) / 2),
                                      std::span(scales).subspan(first, last - first));
    });
    if (scale_codes_.defined()) {
      const quantization::NestedAbsmax nested = quantization::nest(scales);
      std::copy(nested.codes.begin(), nested.codes.end(), scale_codes_.mutable_data_ptr<std::uint8_t>());
      scales = nested.absmax;
      offset_ = nested.offset;
    }
    std::copy(scales.begin(), scales.end(), data<float>(scales_));
    move_to(device);
  }

  void fill(const PackedWeight& weight) override {
    RUNNER_ASSERT(weight.kind == kind_ && weight.is_nested() == scale_codes_.defined(), "a weight has its form");
    const at::Device device = codes_.device();
    move_to(at::kCPU);
    PackedWeight::copy(weight.codes, bytes_of(codes_));
    PackedWeight::copy(weight.scales, bytes_of(scale_codes_.defined() ? scale_codes_ : scales_));
    if (scale_codes_.defined()) PackedWeight::copy(weight.nested_scales, bytes_of(scales_));
    offset_ = weight.nested_offset;
    move_to(device);
  }

  void move_to(const c10::Device& device) override {
    if (codes_.is_meta()) return;
    for (at::Tensor* tensor : {&codes_, &scale_codes_, &scales_}) {
      if (tensor->defined()) *tensor = tensor->to(device);
    }
  }

  void read(std::int64_t first, std::int64_t count, float* out) const override { read_as(first, count, out); }
  void read(std::int64_t first, std::int64_t count, Bf16* out) const override { read_as(first, count, out); }

  bool multiply(const float* x, std::int64_t n, std::int64_t first, std::int64_t count, float* y,
                std::int64_t y_row) const override {
    return multiply_as(x, n, first, count, y, y_row);
  }
  bool multiply(const Bf16* x, std::int64_t n, std::int64_t first, std::int64_t count, float* y,
                std::int64_t y_row) const override {
    return multiply_as(x, n, first, count, y, y_row);
  }

  at::Tensor read_all() const override {
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

  const at::Tensor& scales() const override { return scales_; }

 private:
  /// Of the blocks [first, last); `own` holds them where they are quantised themselves.
  const float* scales_of(std::int64_t first, std::int64_t last, std::vector<float>& own) const {
    const float* const scales = scales_.const_data_ptr<float>();
    if (!scale_codes_.defined()) return scales + first;
    const auto* const codes = scale_codes_.const_data_ptr<std::uint8_t>();
    own.resize(static_cast<std::size_t>(last - first));
    for (std::int64_t i = first; i < last; ++i) {
      own[static_cast<std::size_t>(i - first)] =
          kernels::kSignedCodes.values.data()[codes[i]] * scales[i / quantization::kNestedBlock] + offset_;
    }
    return own.data();
  }

  template <typename T>
  bool multiply_as(const T* x, std::int64_t n, std::int64_t first, std::int64_t count, float* y,
                   std::int64_t y_row) const {
    constexpr std::int64_t kFewRows = 12;  // more of them share the work of looking values up once
    const auto kernel = kernels::transformer<T>().coded_dots;
    if (kernel == nullptr || n > kFewRows || in_ % kBlockOfFourBits != 0) return false;
    const std::int64_t blocks = in_ / kBlockOfFourBits;
    std::vector<float> own;
    const float* const scales = scales_of(first * blocks, (first + count) * blocks, own);
    kernel({x, in_, codes_.const_data_ptr<std::uint8_t>() + first * in_ / 2, scales, table_of(kind_).values.data(), y,
            y_row, n, count, in_});
    return true;
  }

  template <typename T>
  void read_as(std::int64_t first, std::int64_t count, T* out) const {
    const std::int64_t begin = first * in_, size = count * in_;
    const std::int64_t of_first = begin / kBlockOfFourBits, last = up(begin + size, kBlockOfFourBits);
    std::vector<float> own;
    const float* const scales = scales_of(of_first, last, own);
    kernels::dequantize_four_bit(codes_.const_data_ptr<std::uint8_t>() + of_first * kBlockOfFourBits / 2, scales,
                                 begin - of_first * kBlockOfFourBits, size, kBlockOfFourBits, table_of(kind_), out);
  }

  QuantizedForm::Kind kind_;
  std::int64_t rows_, in_;
  at::Tensor codes_;        // two in a byte
  at::Tensor scale_codes_;  // of blocks, where those are quantised as well
  at::Tensor scales_;       // of blocks; else of blocks of these
  float offset_ = 0;        // the mean of the scales
};

/// In 8 bits, each row divided by its absmax.
class EightBits final : public QuantizedMatrix {
 public:
  EightBits(std::int64_t rows, std::int64_t in, bool on_meta)
      : rows_(rows),
        in_(in),
        codes_(empty(rows * in, at::kChar, on_meta).view({rows, in})),
        scales_(empty(rows, at::kFloat, on_meta)) {}

  std::int64_t rows() const override { return rows_; }
  const at::Tensor& codes() const override { return codes_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(codes_.nbytes() + scales_.nbytes()); }

  /// Of what float16 holds of the numbers.
  void fill(const at::Tensor& numbers) override {
    const at::Device device = codes_.device();
    move_to(at::kCPU);
    const at::Tensor low = numbers.to(at::kHalf).to(at::kFloat);
    const auto in = static_cast<std::size_t>(in_);
    const std::span<const float> all(low.const_data_ptr<float>(), static_cast<std::size_t>(low.numel()));
    for_each_piece(static_cast<std::size_t>(rows_), kGrainNumbers / in, [&](std::size_t first, std::size_t last) {
      const quantization::Int8Rows made =
          quantization::quantize_int8_rows(all.subspan(first * in, (last - first) * in), in_);
      std::copy(made.numbers_RC.begin(), made.numbers_RC.end(), codes_.mutable_data_ptr<std::int8_t>() + first * in);
      std::copy(made.absmax_R.begin(), made.absmax_R.end(), scales_.mutable_data_ptr<float>() + first);
    });
    move_to(device);
  }

  void fill(const PackedWeight& weight) override {
    RUNNER_ASSERT(weight.kind == PackedWeight::Kind::kInt8, "a weight has its form");
    const at::Device device = codes_.device();
    move_to(at::kCPU);
    PackedWeight::copy(weight.codes, bytes_of(codes_));
    PackedWeight::copy(weight.scales, bytes_of(scales_));
    move_to(device);
  }

  void move_to(const c10::Device& device) override {
    if (codes_.is_meta()) return;
    codes_ = codes_.to(device);
    scales_ = scales_.to(device);
  }

  void read(std::int64_t first, std::int64_t count, float* out) const override {
    const auto* codes = codes_.const_data_ptr<std::int8_t>() + first * in_;
    for (std::int64_t row = first; row < first + count; ++row, codes += in_, out += in_) {
      const float scale = scales_.const_data_ptr<float>()[row] / kMost;
      for (std::int64_t i = 0; i < in_; ++i) out[i] = static_cast<float>(codes[i]) * scale;
    }
  }

  void read(std::int64_t first, std::int64_t count, Bf16* out) const override {
    std::vector<float> row(static_cast<std::size_t>(in_));
    for (std::int64_t i = 0; i < count; ++i) {
      read(first + i, 1, row.data());
      kernels::transformer<Bf16>().lower(row.data(), out + i * in_, in_);
    }
  }

  at::Tensor read_all() const override { return codes_.to(at::kFloat) * (scales_ / kMost).unsqueeze(1); }
  const at::Tensor& scales() const override { return scales_; }

 private:
  std::int64_t rows_, in_;
  at::Tensor codes_;   // [R, I] int8
  at::Tensor scales_;  // [R]
};

/// Sums of products of 8 bits, [N, R] float32 from exact ones.
at::Tensor exact_sums(const at::Tensor& x_NI, const at::Tensor& w_RI) {
  if (x_NI.is_cpu()) return at::_int_mm(x_NI, w_RI.t()).to(at::kFloat);
  return at::matmul(x_NI.to(at::kDouble), w_RI.t().to(at::kDouble)).to(at::kFloat);
}

}  // namespace

namespace {

constexpr std::int64_t kFewRows = 16;  // of more of them LibTorch's product is faster

/// Of outliers: columns, multiplied as they are.
at::Tensor with_outliers(const at::Tensor& y_NR, const at::Tensor& x_NI, const QuantizedMatrix& matrix,
                         const at::Tensor& outliers_K) {
  const at::Tensor weight_RK =
      matrix.codes().index_select(1, outliers_K).to(at::kFloat) * (matrix.scales() / kMost).unsqueeze(1);
  return y_NR + at::matmul(x_NI.to(at::kFloat).index_select(1, outliers_K), weight_RK.t());
}

/// The same numbers as int8_products() of many rows.
at::Tensor products_of_few(const at::Tensor& x_NI, const QuantizedMatrix& matrix, double threshold) {
  const at::Tensor low_NI = x_NI.to(at::kHalf).to(at::kFloat).contiguous();
  const std::int64_t rows = x_NI.size(0), in = x_NI.size(1), out = matrix.rows();
  const quantization::Int8Rows x = quantization::quantize_int8_rows(
      {low_NI.const_data_ptr<float>(), static_cast<std::size_t>(low_NI.numel())}, in, static_cast<float>(threshold));
  const at::Tensor y_NR = kernels::new_tensor<float>({rows, out});
  const auto* const codes = matrix.codes().const_data_ptr<std::int8_t>();
  const auto* const scales = matrix.scales().const_data_ptr<float>();
  auto* const y = data<float>(y_NR);
  kernels::parallel_for_rows(out, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t columns = end - begin;
    std::vector<std::int32_t> sums(static_cast<std::size_t>(rows * columns));
    kernels::int8_dots({x.numbers_RC.data(), codes + begin * in, sums.data(), columns, rows, columns, in});
    for (std::int64_t row = 0; row < rows; ++row) {
      const float absmax = x.absmax_R[static_cast<std::size_t>(row)];
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto sum = static_cast<float>(sums[static_cast<std::size_t>(row * columns + i)]);
        y[row * out + begin + i] = sum * (absmax * scales[begin + i]) / (kMost * kMost);
      }
    }
  });
  if (x.outliers.empty()) return y_NR;
  at::Tensor outliers_K = at::empty({std::ssize(x.outliers)}, at::TensorOptions(at::kLong));
  std::copy(x.outliers.begin(), x.outliers.end(), outliers_K.mutable_data_ptr<std::int64_t>());
  return with_outliers(y_NR, x_NI, matrix, outliers_K);
}

}  // namespace

std::unique_ptr<QuantizedMatrix> make_quantized_matrix(const QuantizedForm& form, std::int64_t rows, std::int64_t in,
                                                       bool on_meta) {
  if (form.kind == QuantizedForm::Kind::kInt8) return std::make_unique<EightBits>(rows, in, on_meta);
  return std::make_unique<FourBits>(form, rows, in, on_meta);
}

at::Tensor int8_products(const at::Tensor& x_NI, const QuantizedMatrix& matrix, double threshold) {
  if (x_NI.is_cpu() && x_NI.size(0) <= kFewRows) return products_of_few(x_NI, matrix, threshold);
  // As float16 holds it; what is left out is read as it is.
  const at::Tensor low_NI = x_NI.to(at::kHalf).to(at::kFloat);
  at::Tensor kept_NI = low_NI, outliers_K;
  if (threshold > 0) {
    const at::Tensor beyond_NI = low_NI.abs().ge(threshold);
    const at::Tensor is_outlier_I = beyond_NI.any(0);
    // What is not left out of a column does not count for its row's absmax either where it lies beyond.
    kept_NI = low_NI.masked_fill(beyond_NI, 0);
    if (!x_NI.is_meta()) outliers_K = is_outlier_I.nonzero().squeeze(1);
  }
  const at::Tensor absmax_N = kept_NI.abs().amax({1});
  const at::Tensor scale_N1 = (kMost / absmax_N).nan_to_num(0.0, 0.0).unsqueeze(1);
  at::Tensor codes_NI = (low_NI * scale_N1).round().clamp(-kMost, kMost);
  if (outliers_K.defined()) codes_NI = codes_NI.index_fill(1, outliers_K, 0);
  const at::Tensor by_NR = absmax_N.unsqueeze(1) * matrix.scales().unsqueeze(0);
  at::Tensor y_NR = exact_sums(codes_NI.to(at::kChar), matrix.codes()) * by_NR / (kMost * kMost);
  if (!outliers_K.defined() || outliers_K.numel() == 0) return y_NR;
  return with_outliers(y_NR, x_NI, matrix, outliers_K);
}

}  // namespace components::part
