// B: samples   T: positions   H: heads   K: heads of keys and values   D: features of a head
//
// With product kernels of our own a head is worked through in blocks of rows: what a block looks at is multiplied, and
// nothing of the future, while it lies in the second-level cache. Else whole batches go to LibTorch, and texts of
// unlike length one by one.

#include "components/part/fused/attend_heads.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/bmm.h>

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "components/kernels/product.h"
#include "components/ops/torch_bridge.h"
#include "components/tensor/tensors.h"

namespace components::part {
namespace {

using kernels::Bf16;
using kernels::data;
using kernels::DropMask;
using kernels::Matrix;
using kernels::new_tensor;
using kernels::PackedMatrix;
using kernels::parallel_for_rows;
using kernels::ProductKernel;
using kernels::transformer;

constexpr std::int64_t kBlockRows = 48;  // four tiles of the product kernel

struct Size {
  std::int64_t rows, columns, depth;
};

/// What one thread needs beside the tensors: the kernel's scratch, two matrices of a head in panels and two as they
/// are, and those of a block.
template <typename T>
class Workspace {
 public:
  /// Of one text, in memory of room().
  Workspace(const ProductKernel<T>& kernel, const AttentionShape& s, at::Tensor memory)
      : kernel_(kernel),
        of_panels_(panels(kernel, s)),
        of_head_(s.positions * s.head),
        of_block_(kBlockRows * columns(s)),
        memory_(std::move(memory)) {}

  /// Room for each text of that shape, of which a thread takes one after the other.
  static at::Tensor room(const ProductKernel<T>& kernel, const AttentionShape& s) {
    return new_tensor<float>({numbers(kernel, s)});
  }
  static std::int64_t numbers(const ProductKernel<T>& kernel, const AttentionShape& s) {
    std::int64_t most = 0;
    for (std::int64_t text = 0; text < s.batch; ++text) {
      most = std::max(most, numbers_of_text(kernel, s.of_text(text)));
      if (s.begins.empty()) break;
    }
    return most;
  }
  /// Of a block's rows: all that one of them may look at.
  static std::int64_t columns(const AttentionShape& s) {
    return s.narrow() ? std::min(s.positions, (s.causal ? 1 : 2) * s.window + kBlockRows) : s.positions;
  }

  /// b for all blocks of a head, [D, T] or [T, D].
  PackedMatrix pack(const Matrix<T>& b, std::int64_t columns, std::int64_t depth, int i) const {
    return kernel_.pack(b, columns, depth, data<float>(memory_) + kernel_.scratch + i * of_panels_);
  }
  float* head(int i) const { return data<float>(memory_) + kernel_.scratch + 2 * of_panels_ + i * of_head_; }
  float* block(int i) const { return head(2) + i * of_block_; }

  void multiply(const Matrix<T>& a, const Matrix<T>& b, float* c, std::int64_t c_row, const Size& size,
                bool add = false) const {
    kernel_.multiply({a, b, c, c_row, size.rows, size.columns, size.depth, add}, data<float>(memory_));
  }
  void multiply(const Matrix<T>& a, const PackedMatrix& b, float* c, std::int64_t c_row, const Size& size) const {
    kernel_.multiply({a, {}, c, c_row, size.rows, size.columns, size.depth, false, b}, data<float>(memory_));
  }
  /// Rounds at the end; `room` takes what is too deep to be summed up at once.
  void multiply(const Matrix<Bf16>& a, const Matrix<Bf16>& b, Bf16* c, std::int64_t c_row, const Size& size,
                const PackedMatrix& packed, float* room) const {
    if (size.depth <= kernel_.low_depth_max) {
      kernel_.multiply_low({a, b, c, c_row, size.rows, size.columns, size.depth, false, packed}, data<float>(memory_));
      return;
    }
    kernel_.multiply({a, b, room, size.columns, size.rows, size.columns, size.depth, false, packed},
                     data<float>(memory_));
    for (std::int64_t r = 0; r < size.rows; ++r) {
      transformer<Bf16>().lower(room + r * size.columns, c + r * c_row, size.columns);
    }
  }
  void multiply(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t c_row, const Size& size,
                const PackedMatrix& packed, float*) const {
    kernel_.multiply({a, b, c, c_row, size.rows, size.columns, size.depth, false, packed}, data<float>(memory_));
  }

 private:
  static std::int64_t numbers_of_text(const ProductKernel<T>& kernel, const AttentionShape& s) {
    return kernel.scratch + 2 * panels(kernel, s) + 2 * s.positions * s.head + blocks(s) * kBlockRows * columns(s);
  }
  static std::int64_t blocks(const AttentionShape& s) { return s.keeps_weights() ? 3 : 4; }

  /// A window begins anywhere, and a product may use a prefix of panels only.
  static std::int64_t panels(const ProductKernel<T>& kernel, const AttentionShape& s) {
    if (s.narrow()) return 0;
    return std::max(kernel.packed_size(s.positions, s.head), kernel.packed_size(s.head, s.positions));
  }

  const ProductKernel<T>& kernel_;
  std::int64_t of_panels_, of_head_, of_block_;
  at::Tensor memory_;
};

// Where T is float, results go to their place at once; else by way of a float32 block that is rounded.
float* room_for(float* to, float*) { return to; }
float* room_for(Bf16*, float* instead) { return instead; }
void finish(const float*, float*, std::int64_t) {}
void finish(const float* from, Bf16* to, std::int64_t size) { transformer<Bf16>().lower(from, to, size); }
const float* as_float(const float* from, std::int64_t, float*) { return from; }
const float* as_float(const Bf16* from, std::int64_t size, float* to) {
  transformer<Bf16>().raise(from, to, size);
  return to;
}

/// Room for T: the numbers' own, or another block.
template <typename T>
T* as_type(float* numbers, float* other) {
  if constexpr (std::is_same_v<T, float>) {
    return numbers;
  } else {
    return reinterpret_cast<T*>(other);
  }
}

/// One head's q, k and v, [T, D].
template <typename T>
struct Head {
  const T *q, *k, *v;
};

/// A block's weights after dropout: themselves, or others in `room`.
template <typename T>
const T* dropped(const T* block, float* room, const DropMask& drop, std::int64_t rows, std::int64_t seen,
                 std::int64_t stride) {
  if (!drop.drops()) return block;
  T* const to = reinterpret_cast<T*>(room);
  transformer<T>().drop(block, to, drop, rows, seen, stride);
  return to;
}

/// Where a block of rows looks: positions `begin` to `end`.
struct Span {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

Span span_of(const AttentionShape& s, std::int64_t first, std::int64_t rows) {
  if (s.causal) return {s.narrow() ? std::max<std::int64_t>(0, first - s.window + 1) : 0, first + rows};
  if (!s.narrow()) return {0, s.positions};
  return {std::max<std::int64_t>(0, first - s.window), std::min(s.positions, first + rows + s.window)};
}

/// The rows of a block from position `first` on, as the softmax sees them.
kernels::AttentionRows rows_of_block(const AttentionShape& s, const Span& seen, std::int64_t first, std::int64_t rows,
                                     std::int64_t stride) {
  return {first - seen.begin, rows, s.narrow() ? seen.size() : stride, stride, s.narrow() ? s.window : 0, s.causal};
}

/// A block's weights before dropout, in `block`: a row every `stride` elements. `keys`: packed, if they are.
template <typename T>
void weights_of_block(const Head<T>& in, T* block, std::int64_t first, std::int64_t rows, std::int64_t stride,
                      const AttentionShape& s, const Workspace<T>& workspace, const PackedMatrix& keys) {
  const std::int64_t width = s.head;
  const Span seen = span_of(s, first, rows);
  float* const scores = room_for(block, workspace.block(0));
  const Matrix<T> queries{in.q + first * width, width, 1};
  if (keys.panels == nullptr) {
    workspace.multiply(queries, {in.k + seen.begin * width, 1, width}, scores, stride, {rows, seen.size(), width});
  } else {
    workspace.multiply(queries, keys, scores, stride, {rows, seen.size(), width});
  }
  transformer<float>().softmax(scores, s.scale, rows_of_block(s, seen, first, rows, stride));
  finish(scores, block, rows * stride);
}

template <typename T>
void attend_head(const Head<T>& in, T* probs, T* out, const AttentionShape& s, const DropMask& drop,
                 const Workspace<T>& workspace) {
  const std::int64_t positions = s.positions, width = s.head, stride = Workspace<T>::columns(s);
  PackedMatrix keys, values;
  if (!s.narrow()) {
    keys = workspace.pack({in.k, 1, width}, positions, width, 0);
    values = workspace.pack({in.v, width, 1}, width, positions, 1);
  }
  for (std::int64_t first = 0; first < positions; first += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, positions - first);
    const Span seen = span_of(s, first, rows);
    T* const block = probs != nullptr ? probs + first * positions : reinterpret_cast<T*>(workspace.block(3));
    weights_of_block(in, block, first, rows, stride, s, workspace, keys);
    const T* const weights = dropped(block, workspace.block(1), drop.from_row(first), rows, seen.size(), stride);
    workspace.multiply({weights, stride, 1}, {in.v + seen.begin * width, width, 1}, out + first * s.features(),
                       s.features(), {rows, width, seen.size()}, values, workspace.block(2));
  }
}

template <typename T>
struct HeadGradients {
  T *dq, *dk, *dv;
  bool first, last;  ///< of the heads whose gradients add up in dk and dv
};

template <typename T>
void attend_head_backward(const Head<T>& in, const T* probs, const T* dout, const HeadGradients<T>& to,
                          const AttentionShape& s, const DropMask& drop, const Workspace<T>& workspace) {
  const std::int64_t positions = s.positions, width = s.head, of_head = positions * width;
  const std::int64_t stride = Workspace<T>::columns(s);
  float* const dk = room_for(to.dk, workspace.head(0));
  float* const dv = room_for(to.dv, workspace.head(1));
  PackedMatrix values, keys;
  if (!s.narrow()) {
    values = workspace.pack({in.v, 1, width}, positions, width, 0);
    keys = workspace.pack({in.k, width, 1}, width, positions, 1);
  }
  if (to.first) {
    std::fill_n(dk, of_head, 0.0F);
    std::fill_n(dv, of_head, 0.0F);
  }
  for (std::int64_t first = 0; first < positions; first += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, positions - first);
    const Span seen = span_of(s, first, rows);
    const std::int64_t from = seen.begin * width;
    T* const recomputed = reinterpret_cast<T*>(probs == nullptr ? workspace.block(3) : nullptr);
    if (probs == nullptr) weights_of_block(in, recomputed, first, rows, stride, s, workspace, {});
    const T* const block = probs != nullptr ? probs + first * positions : recomputed;
    const T* const dout_block = dout + first * s.features();
    float* const dscores = workspace.block(1);
    const DropMask of_block = drop.from_row(first);
    const T* const weights = dropped(block, workspace.block(2), of_block, rows, seen.size(), stride);
    workspace.multiply({weights, 1, stride}, {dout_block, s.features(), 1}, dv + from, width,
                       {seen.size(), width, rows}, true);
    if (s.narrow()) {
      workspace.multiply({dout_block, s.features(), 1}, {in.v + from, 1, width}, dscores, stride,
                         {rows, seen.size(), width});
    } else {
      workspace.multiply({dout_block, s.features(), 1}, values, dscores, stride, {rows, seen.size(), width});
    }
    if (drop.drops()) transformer<float>().drop(dscores, dscores, of_block, rows, seen.size(), stride);
    transformer<float>().softmax_backward(as_float(block, rows * stride, workspace.block(0)), dscores, s.scale,
                                          rows_of_block(s, seen, first, rows, stride));
    T* const low = as_type<T>(dscores, workspace.block(2));
    finish(dscores, low, rows * stride);
    workspace.multiply({low, stride, 1}, {in.k + from, width, 1}, to.dq + first * width, width,
                       {rows, width, seen.size()}, keys, workspace.block(0));
    workspace.multiply({low, 1, stride}, {in.q + first * width, width, 1}, dk + from, width, {seen.size(), width, rows},
                       true);
  }
  if (!to.last) return;
  finish(dk, to.dk, of_head);
  finish(dv, to.dv, of_head);
}

template <typename T>
bool covers(const ProductKernel<T>* kernel, const AttentionShape& s) {
  // Of a sequence whose weights are kept bfloat16 sums are not cut, so that they keep their bits.
  return kernel != nullptr && (std::is_same_v<T, float> || !s.keeps_weights() || s.positions <= kernel->low_depth_max);
}

/// [B * H, T, D] to [B * T, H * D] and back.
at::Tensor merge_heads(const at::Tensor& x, const AttentionShape& s) {
  return x.view({s.batch, s.heads, s.positions, s.head}).transpose(1, 2).reshape({s.rows(), s.features()});
}
at::Tensor part_heads(const at::Tensor& x, const AttentionShape& s) {
  return x.view({s.batch, s.positions, s.heads, s.head}).transpose(1, 2).reshape({s.samples(), s.positions, s.head});
}

/// [B * H, T, D] to [B, H, T, D].
at::Tensor by_sample(const at::Tensor& x, const AttentionShape& s) {
  return x.view({s.batch, s.heads, s.positions, s.head});
}

/// `f(sample)` on all threads, for whole matrices of attention.
template <typename F>
void each_sample(const AttentionShape& s, const F& f) {
  parallel_for_rows(s.samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

/// The whole of `probs`, or of its gradient, times the mask: into `to`, which may be the same tensor.
template <typename T>
void drop_all(const at::Tensor& from, const at::Tensor& to, const DropMask& drop, const AttentionShape& s) {
  const std::int64_t n = s.positions;
  each_sample(s, [&](std::int64_t i) {
    transformer<T>().drop(data<T>(from) + i * n * n, data<T>(to) + i * n * n, drop.from_row(i * s.rows_of_mask()), n, n,
                          n);
  });
}

template <typename T>
at::Tensor dropped_in_batches(const at::Tensor& probs, const DropMask& drop, const AttentionShape& s) {
  if (!drop.drops()) return probs;
  at::Tensor weights = kernels::new_like<T>(probs);
  drop_all<T>(probs, weights, drop, s);
  return weights;
}

/// Keys or values for each head of queries, [B * K, T, D] to [B * H, T, D]; and the sums of their gradients.
at::Tensor for_each_query(const at::Tensor& x, const AttentionShape& s) {
  if (s.shared() == 1) return x;
  return x.unsqueeze(1).expand({-1, s.shared(), -1, -1}).reshape({s.samples(), s.positions, s.head});
}
at::Tensor sum_of_queries(const at::Tensor& x, const AttentionShape& s) {
  if (s.shared() == 1) return x;
  return x.view({s.kv_samples(), s.shared(), s.positions, s.head}).sum(1);
}

template <typename T>
at::Tensor attend_in_batches(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& s,
                             const DropMask& drop, at::Tensor& probs) {
  const std::int64_t n = s.positions;
  probs = at::bmm(q, for_each_query(k, s).transpose(1, 2));
  each_sample(s, [&](std::int64_t i) {
    transformer<T>().softmax(data<T>(probs) + i * n * n, s.scale, {0, n, n, n, 0, s.causal});
  });
  return merge_heads(at::bmm(dropped_in_batches<T>(probs, drop, s), for_each_query(v, s)), s);
}

template <typename T>
void attend_in_batches_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& probs,
                                const at::Tensor& dmixed, const AttentionShape& s, const DropMask& drop, at::Tensor& dq,
                                at::Tensor& dk, at::Tensor& dv) {
  const std::int64_t n = s.positions;
  const at::Tensor dout = part_heads(dmixed, s);
  dv = sum_of_queries(at::bmm(dropped_in_batches<T>(probs, drop, s).transpose(1, 2), dout), s);
  const at::Tensor dscores = at::bmm(dout, for_each_query(v, s).transpose(1, 2));
  if (drop.drops()) drop_all<T>(dscores, dscores, drop, s);
  each_sample(s, [&](std::int64_t i) {
    transformer<T>().softmax_backward(data<T>(probs) + i * n * n, data<T>(dscores) + i * n * n, s.scale,
                                      {0, n, n, n, 0, s.causal});
  });
  dq = at::bmm(dscores, for_each_query(k, s));
  dk = sum_of_queries(at::bmm(dscores.transpose(1, 2), q), s);
}

/// By LibTorch's kernel, which keeps no weights either.
at::Tensor attend_in_tiles(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& s,
                           KeptAttention& kept) {
  std::tie(kept.out, kept.logsumexp) = at::_scaled_dot_product_flash_attention_for_cpu(
      by_sample(q, s), by_sample(for_each_query(k, s), s), by_sample(for_each_query(v, s), s), 0.0, s.causal, {},
      static_cast<double>(s.scale));
  return kept.out.transpose(1, 2).reshape({s.rows(), s.features()});
}

void attend_in_tiles_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const KeptAttention& kept,
                              const at::Tensor& dmixed, const AttentionShape& s, at::Tensor& dq, at::Tensor& dk,
                              at::Tensor& dv) {
  std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_sample(part_heads(dmixed, s), s), by_sample(q, s), by_sample(for_each_query(k, s), s),
      by_sample(for_each_query(v, s), s), kept.out, kept.logsumexp, 0.0, s.causal, {}, static_cast<double>(s.scale));
  for (at::Tensor* gradient : {&dq, &dk, &dv}) {
    *gradient = gradient->reshape({s.samples(), s.positions, s.head}).contiguous();
  }
  dk = sum_of_queries(dk, s);
  dv = sum_of_queries(dv, s);
}

/// Where the kept weights of each text begin, and how many there are.
std::vector<std::int64_t> begins_of_weights(const AttentionShape& s) {
  std::vector<std::int64_t> begins = {0};
  for (std::int64_t text = 0; text < s.batch; ++text) {
    const std::int64_t rows = s.rows_of(text);
    begins.push_back(begins.back() + (s.of_text(text).keeps_weights() ? s.heads * rows * rows : 0));
  }
  return begins;
}

/// What belongs to one head of queries of a text.
struct Place {
  std::int64_t text, head;
  std::int64_t queries, keys;  ///< where its q, and its k and v, begin
  std::int64_t features;       ///< of the heads side by side, where its own begin
  std::int64_t mask_row;
};

Place place_of(const AttentionShape& s, std::int64_t sample) {
  const std::int64_t text = sample / s.heads, head = sample % s.heads;
  const std::int64_t before = s.rows_before(text), of_head = s.rows_of(text) * s.head;
  return {text,
          head,
          before * s.features() + head * of_head,
          before * s.kv_heads * s.head + head / s.shared() * of_head,
          before * s.features() + head * s.head,
          sample * s.rows_of_mask()};
}

template <typename T>
T* weights_of(const at::Tensor& weights, const std::vector<std::int64_t>& begins, const Place& place,
              const AttentionShape& of_text) {
  if (!of_text.keeps_weights()) return nullptr;
  return data<T>(weights) + begins[static_cast<std::size_t>(place.text)] +
         place.head * of_text.positions * of_text.positions;
}

template <typename T>
Head<T> head_at(const Place& place, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return {data<T>(q) + place.queries, data<T>(k) + place.keys, data<T>(v) + place.keys};
}

/// The heads of one text, [H or K, T, D], where they lie in those of all.
at::Tensor heads_of_text(const at::Tensor& x, const AttentionShape& s, std::int64_t text, std::int64_t heads) {
  return x.view({-1})
      .narrow(0, s.rows_before(text) * heads * s.head, s.rows_of(text) * heads * s.head)
      .view({heads, s.rows_of(text), s.head});
}

}  // namespace

bool attend_heads_covers(const AttentionShape& s, bool bf16, bool drops) {
  const bool own = bf16 ? covers(kernels::product_kernel<Bf16>(), s) : covers(kernels::product_kernel<float>(), s);
  if (own) return !(s.narrow() && drops);
  return !s.narrow() && (s.keeps_weights() || !drops);
}

template <typename T>
at::Tensor attend_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& s,
                        const DropMask& drop, KeptAttention& kept) {
  const ProductKernel<T>* kernel = kernels::product_kernel<T>();
  if (!covers(kernel, s) && s.begins.empty()) {
    return s.keeps_weights() ? attend_in_batches<T>(q, k, v, s, drop, kept.weights) : attend_in_tiles(q, k, v, s, kept);
  }
  at::Tensor mixed = new_tensor<T>({s.rows(), s.features()});
  if (!covers(kernel, s)) {
    kept.of_texts.resize(static_cast<std::size_t>(s.batch));
    for (std::int64_t text = 0; text < s.batch; ++text) {
      const auto of = [&](const at::Tensor& x, std::int64_t heads) { return heads_of_text(x, s, text, heads); };
      mixed.narrow(0, s.rows_before(text), s.rows_of(text))
          .copy_(attend_heads<T>(of(q, s.heads), of(k, s.kv_heads), of(v, s.kv_heads), s.of_text(text),
                                 drop.from_row(text * s.heads * s.rows_of_mask()),
                                 kept.of_texts[static_cast<std::size_t>(text)]));
    }
    return mixed;
  }
  const std::vector<std::int64_t> begins = begins_of_weights(s);
  if (begins.back() > 0) kept.weights = new_tensor<T>({begins.back()});
  const at::Tensor measured = kernels::meta_workspace(s.samples(), Workspace<T>::numbers(*kernel, s));
  parallel_for_rows(s.samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const at::Tensor room = Workspace<T>::room(*kernel, s);
    for (std::int64_t i = begin; i < end; ++i) {
      const Place place = place_of(s, i);
      const AttentionShape of_text = s.of_text(place.text);
      attend_head<T>(head_at<T>(place, q, k, v), weights_of<T>(kept.weights, begins, place, of_text),
                     data<T>(mixed) + place.features, of_text, drop.from_row(place.mask_row),
                     Workspace<T>(*kernel, of_text, room));
    }
  });
  return mixed;
}

template <typename T>
void attend_heads_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const KeptAttention& kept,
                           const at::Tensor& dmixed, const AttentionShape& s, const DropMask& drop, at::Tensor& dq,
                           at::Tensor& dk, at::Tensor& dv) {
  const ProductKernel<T>* kernel = kernels::product_kernel<T>();
  if (!covers(kernel, s) && s.begins.empty()) {
    if (!s.keeps_weights()) return attend_in_tiles_backward(q, k, v, kept, dmixed, s, dq, dk, dv);
    return attend_in_batches_backward<T>(q, k, v, kept.weights, dmixed, s, drop, dq, dk, dv);
  }
  for (at::Tensor* gradient : {&dq, &dk, &dv}) *gradient = kernels::new_like<T>(gradient == &dq ? q : k);
  if (!covers(kernel, s)) {
    for (std::int64_t text = 0; text < s.batch; ++text) {
      const auto of = [&](const at::Tensor& x, std::int64_t heads) { return heads_of_text(x, s, text, heads); };
      at::Tensor of_q, of_k, of_v;
      attend_heads_backward<T>(of(q, s.heads), of(k, s.kv_heads), of(v, s.kv_heads),
                               kept.of_texts[static_cast<std::size_t>(text)],
                               dmixed.narrow(0, s.rows_before(text), s.rows_of(text)), s.of_text(text),
                               drop.from_row(text * s.heads * s.rows_of_mask()), of_q, of_k, of_v);
      of(dq, s.heads).copy_(of_q);
      of(dk, s.kv_heads).copy_(of_k);
      of(dv, s.kv_heads).copy_(of_v);
    }
    return;
  }
  const std::vector<std::int64_t> begins = begins_of_weights(s);
  const at::Tensor measured = kernels::meta_workspace(s.kv_samples(), Workspace<T>::numbers(*kernel, s));
  // One thread takes all heads that share keys: their gradients add up.
  parallel_for_rows(s.kv_samples(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const at::Tensor room = Workspace<T>::room(*kernel, s);
    for (std::int64_t i = begin * s.shared(); i < end * s.shared(); ++i) {
      const Place place = place_of(s, i);
      const AttentionShape of_text = s.of_text(place.text);
      const bool first = i % s.shared() == 0, last = i % s.shared() == s.shared() - 1;
      const HeadGradients<T> to{data<T>(dq) + place.queries, data<T>(dk) + place.keys, data<T>(dv) + place.keys, first,
                                last};
      attend_head_backward<T>(head_at<T>(place, q, k, v), weights_of<T>(kept.weights, begins, place, of_text),
                              data<T>(dmixed) + place.features, to, of_text, drop.from_row(place.mask_row),
                              Workspace<T>(*kernel, of_text, room));
    }
  });
}

template at::Tensor attend_heads<float>(const at::Tensor&, const at::Tensor&, const at::Tensor&, const AttentionShape&,
                                        const DropMask&, KeptAttention&);
template at::Tensor attend_heads<Bf16>(const at::Tensor&, const at::Tensor&, const at::Tensor&, const AttentionShape&,
                                       const DropMask&, KeptAttention&);
template void attend_heads_backward<float>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                           const KeptAttention&, const at::Tensor&, const AttentionShape&,
                                           const DropMask&, at::Tensor&, at::Tensor&, at::Tensor&);
template void attend_heads_backward<Bf16>(const at::Tensor&, const at::Tensor&, const at::Tensor&, const KeptAttention&,
                                          const at::Tensor&, const AttentionShape&, const DropMask&, at::Tensor&,
                                          at::Tensor&, at::Tensor&);

}  // namespace components::part
