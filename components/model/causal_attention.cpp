// B: samples   T: positions   H: heads   D: features of a head
//
// With product kernels of our own a head is worked through in blocks of rows: what a block looks at is multiplied, and
// nothing of the future, while it lies in the second-level cache. Else whole batches go to LibTorch.

#include "components/model/causal_attention.h"

#include <ATen/ops/bmm.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "components/kernel_rows.h"
#include "components/kernels/product.h"
#include "components/tensors.h"

namespace components::model {
namespace {

using kernels::Bf16;
using kernels::CausalRows;
using kernels::data;
using kernels::in_pieces;
using kernels::new_tensor;
using kernels::Product;
using kernels::ProductKernel;
using kernels::transformer;

constexpr std::int64_t kBlockRows = 48;  // four tiles of the product kernel

float scale_of(const AttentionShape& s) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head))); }

/// Rows of `width` numbers as float32: themselves, or copied to `to`, where one row follows another.
struct Rows {
  const float* at;
  std::int64_t stride;
};
Rows as_float(const float* from, std::int64_t stride, std::int64_t, std::int64_t, float*) { return {from, stride}; }
Rows as_float(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t width, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) transformer<Bf16>().raise(from + i * stride, to + i * width, width);
  return {to, width};
}

/// Where float32 results go: to the tensor itself, or first to `low_rows`, from which finish() rounds them.
struct RowsOut {
  float* at;
  std::int64_t stride;
};
RowsOut room_for(float* to, std::int64_t stride, std::int64_t, float*) { return {to, stride}; }
RowsOut room_for(Bf16*, std::int64_t, std::int64_t width, float* instead) { return {instead, width}; }
void finish(const RowsOut&, float*, std::int64_t, std::int64_t, std::int64_t) {}
void finish(const RowsOut& from, Bf16* to, std::int64_t stride, std::int64_t rows, std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) {
    transformer<Bf16>().lower(from.at + i * from.stride, to + i * stride, width);
  }
}

/// What one thread needs beside the tensors.
class Workplace {
 public:
  Workplace(const ProductKernel& kernel, const AttentionShape& s)
      : kernel_(kernel), of_head_(s.positions * s.head), of_block_(kBlockRows * s.positions) {
    memory_ = new_tensor<float>({kernel.scratch + kHeads * of_head_ + kBlocks * of_block_});
  }

  float* head(int i) const { return data<float>(memory_) + kernel_.scratch + i * of_head_; }
  float* block(int i) const { return data<float>(memory_) + kernel_.scratch + kHeads * of_head_ + i * of_block_; }
  void multiply(const Product& product) const { kernel_.multiply(product, data<float>(memory_)); }

 private:
  static constexpr int kHeads = 7, kBlocks = 2;
  const ProductKernel& kernel_;
  std::int64_t of_head_, of_block_;
  at::Tensor memory_;
};

template <typename T>
void attend_head(const T* q_in, const T* k_in, const T* v_in, T* probs, T* out, const AttentionShape& s,
                 const Workplace& place) {
  const std::int64_t positions = s.positions, width = s.head;
  const Rows q = as_float(q_in, width, positions, width, place.head(0));
  const Rows k = as_float(k_in, width, positions, width, place.head(1));
  const Rows v = as_float(v_in, width, positions, width, place.head(2));
  const RowsOut mixed = room_for(out, s.features(), width, place.head(3));
  for (std::int64_t first = 0; first < positions; first += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, positions - first), seen = first + rows;
    const RowsOut scores = room_for(probs + first * positions, positions, positions, place.block(0));
    place.multiply({{q.at + first * q.stride, q.stride, 1},
                    {k.at, 1, k.stride},
                    scores.at,
                    scores.stride,
                    rows,
                    seen,
                    width,
                    false});
    transformer<float>().causal_softmax(scores.at, scale_of(s), {first, rows, seen, scores.stride});
    finish(scores, probs + first * positions, positions, rows, seen);
    place.multiply({{scores.at, scores.stride, 1},
                    {v.at, v.stride, 1},
                    mixed.at + first * mixed.stride,
                    mixed.stride,
                    rows,
                    width,
                    seen,
                    false});
  }
  finish(mixed, out, s.features(), positions, width);
}

template <typename T>
struct HeadGradients {
  T *dq, *dk, *dv;
};

template <typename T>
void attend_head_backward(const T* q_in, const T* k_in, const T* v_in, const T* probs, const T* dmixed,
                          const HeadGradients<T>& to, const AttentionShape& s, const Workplace& place) {
  const std::int64_t positions = s.positions, width = s.head;
  const Rows q = as_float(q_in, width, positions, width, place.head(0));
  const Rows k = as_float(k_in, width, positions, width, place.head(1));
  const Rows v = as_float(v_in, width, positions, width, place.head(2));
  const Rows dout = as_float(dmixed, s.features(), positions, width, place.head(3));
  const RowsOut dq = room_for(to.dq, width, width, place.head(4));
  const RowsOut dk = room_for(to.dk, width, width, place.head(5));
  const RowsOut dv = room_for(to.dv, width, width, place.head(6));
  std::fill_n(dk.at, positions * width, 0.0F);
  std::fill_n(dv.at, positions * width, 0.0F);
  for (std::int64_t first = 0; first < positions; first += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, positions - first), seen = first + rows;
    const Rows p = as_float(probs + first * positions, positions, rows, positions, place.block(0));
    float* const dscores = place.block(1);
    const float* const q_block = q.at + first * q.stride;
    const float* const dout_block = dout.at + first * dout.stride;
    place.multiply({{p.at, 1, p.stride}, {dout_block, dout.stride, 1}, dv.at, dv.stride, seen, width, rows, true});
    place.multiply({{dout_block, dout.stride, 1}, {v.at, 1, v.stride}, dscores, positions, rows, seen, width, false});
    transformer<float>().causal_softmax_backward(p.at, dscores, scale_of(s), {first, rows, seen, positions});
    place.multiply(
        {{dscores, positions, 1}, {k.at, k.stride, 1}, dq.at + first * dq.stride, dq.stride, rows, width, seen, false});
    place.multiply({{dscores, 1, positions}, {q_block, q.stride, 1}, dk.at, dk.stride, seen, width, rows, true});
  }
  finish(dq, to.dq, width, positions, width);
  finish(dk, to.dk, width, positions, width);
  finish(dv, to.dv, width, positions, width);
}

/// [B * H, T, D] to [B * T, H * D] and back.
at::Tensor merge_heads(const at::Tensor& x, const AttentionShape& s) {
  return x.view({s.batch, s.heads, s.positions, s.head}).transpose(1, 2).reshape({s.rows(), s.features()});
}
at::Tensor part_heads(const at::Tensor& x, const AttentionShape& s) {
  return x.view({s.batch, s.positions, s.heads, s.head}).transpose(1, 2).reshape({s.samples(), s.positions, s.head});
}

/// `f(sample)` on all threads, for whole matrices of attention.
template <typename F>
void each_sample(const AttentionShape& s, const F& f) {
  in_pieces(s.samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

template <typename T>
at::Tensor attend_in_batches(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& s,
                             at::Tensor& probs) {
  const std::int64_t n = s.positions;
  probs = at::bmm(q, k.transpose(1, 2));
  each_sample(s, [&](std::int64_t i) {
    transformer<T>().causal_softmax(data<T>(probs) + i * n * n, scale_of(s), {0, n, n, n});
  });
  return merge_heads(at::bmm(probs, v), s);
}

template <typename T>
void attend_in_batches_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& probs,
                                const at::Tensor& dmixed, const AttentionShape& s, at::Tensor& dq, at::Tensor& dk,
                                at::Tensor& dv) {
  const std::int64_t n = s.positions;
  const at::Tensor dout = part_heads(dmixed, s);
  dv = at::bmm(probs.transpose(1, 2), dout);
  const at::Tensor dscores = at::bmm(dout, v.transpose(1, 2));
  each_sample(s, [&](std::int64_t i) {
    transformer<T>().causal_softmax_backward(data<T>(probs) + i * n * n, data<T>(dscores) + i * n * n, scale_of(s),
                                             {0, n, n, n});
  });
  dq = at::bmm(dscores, k);
  dk = at::bmm(dscores.transpose(1, 2), q);
}

}  // namespace

template <typename T>
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& s,
                            at::Tensor& probs) {
  const ProductKernel* kernel = kernels::product_kernel();
  if (kernel == nullptr) return attend_in_batches<T>(q, k, v, s, probs);
  const std::int64_t square = s.positions * s.positions, of_head = s.positions * s.head;
  probs = new_tensor<T>({s.samples(), s.positions, s.positions});
  at::Tensor mixed = new_tensor<T>({s.rows(), s.features()});
  in_pieces(s.samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const Workplace place(*kernel, s);
    for (std::int64_t i = begin; i < end; ++i) {
      T* const out = data<T>(mixed) + i / s.heads * s.positions * s.features() + i % s.heads * s.head;
      attend_head(data<T>(q) + i * of_head, data<T>(k) + i * of_head, data<T>(v) + i * of_head,
                  data<T>(probs) + i * square, out, s, place);
    }
  });
  return mixed;
}

template <typename T>
void causal_attention_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& probs,
                               const at::Tensor& dmixed, const AttentionShape& s, at::Tensor& dq, at::Tensor& dk,
                               at::Tensor& dv) {
  const ProductKernel* kernel = kernels::product_kernel();
  if (kernel == nullptr) return attend_in_batches_backward<T>(q, k, v, probs, dmixed, s, dq, dk, dv);
  const std::int64_t square = s.positions * s.positions, of_head = s.positions * s.head;
  for (at::Tensor* gradient : {&dq, &dk, &dv}) *gradient = new_tensor<T>({s.samples(), s.positions, s.head});
  in_pieces(s.samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const Workplace place(*kernel, s);
    for (std::int64_t i = begin; i < end; ++i) {
      const T* of_out = data<T>(dmixed) + i / s.heads * s.positions * s.features() + i % s.heads * s.head;
      const HeadGradients<T> to{data<T>(dq) + i * of_head, data<T>(dk) + i * of_head, data<T>(dv) + i * of_head};
      attend_head_backward<T>(data<T>(q) + i * of_head, data<T>(k) + i * of_head, data<T>(v) + i * of_head,
                              data<T>(probs) + i * square, of_out, to, s, place);
    }
  });
}

template at::Tensor causal_attention<float>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                            const AttentionShape&, at::Tensor&);
template at::Tensor causal_attention<Bf16>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                           const AttentionShape&, at::Tensor&);
template void causal_attention_backward<float>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                               const at::Tensor&, const at::Tensor&, const AttentionShape&, at::Tensor&,
                                               at::Tensor&, at::Tensor&);
template void causal_attention_backward<Bf16>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                              const at::Tensor&, const at::Tensor&, const AttentionShape&, at::Tensor&,
                                              at::Tensor&, at::Tensor&);

}  // namespace components::model
