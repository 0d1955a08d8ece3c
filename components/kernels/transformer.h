#pragma once

// What surrounds the matrix products of a transformer, each in one pass over memory. Every function works on rows that
// no other call touches, so a caller may give ranges of rows to several threads. Arithmetic is float32 whatever the
// type of the rows.

#include <cstdint>

namespace components::kernels {

/// bfloat16 as it lies in memory: the upper half of a float32.
struct Bf16 {
  std::uint16_t bits;
};

/// Matrices are row-major without gaps.

/// What dropout multiplies a matrix with: 0, or `scale` for what stays. Whether an element stays is a function of key,
/// number, row and column alone (the 32-bit words of Philox4x32-10), so a mask may be made twice, and in any pieces.
struct DropMask {
  std::uint64_t key = 0;
  std::uint32_t number = 0;     ///< tells masks apart that share a key
  std::uint32_t threshold = 0;  ///< words below it are left out; 0: none are, and nothing is multiplied
  float scale = 1;              ///< 1 / (1 - p)
  std::int64_t first_row = 0;   ///< of the matrix, where a call's rows begin
  /// For a matrix that holds some rows of another one and shares its mask: which row of that one each row is, as long
  /// as the mask is used; null: the same.
  const std::int64_t* rows = nullptr;

  bool drops() const { return threshold > 0; }
  DropMask from_row(std::int64_t row) const {
    DropMask later = *this;
    later.first_row += row;
    return later;
  }
};

/// Layer norm of `sum = x + drop * (branch + branch_bias)`; without a branch of x itself. Not centred it is the root
/// mean square norm (Zhang & Sennrich 2019): `mean` is 0.
///
/// x           [rows, width] float32, the residual stream
/// branch      [rows, width] or null;  branch_bias [width] or null
/// sum         [rows, width] float32, where x + branch goes; null without a branch
/// weight      [width];  bias [width] or null
/// normed      [rows, width] or null
/// mean, rstd  [rows]
/// whole       [rows, width] float32 or null: the same as normed, not rounded, for a stream that goes on behind the
/// norm
template <typename T>
struct LayerNorm {
  const float* x;
  const T* branch;
  const float* branch_bias;
  float* sum;
  const float* weight;
  const float* bias;
  double eps;
  T* normed;
  float* mean;
  float* rstd;
  std::int64_t rows, width;
  DropMask drop;
  bool centred = true;
  float* whole = nullptr;
};

/// Its backward pass. The gradient of the residual stream passes by the norm as well:
/// `dx = dstream + norm's gradient`.
///
/// x         [rows, width], what was normed
/// dnormed   [rows, width] or null;  dwhole [rows, width] float32 or null: the gradient of the norm's output is their
/// sum dstream   [rows, width] or null dx        [rows, width] float32 dx_low    [rows, width] or null: dx again times
/// `drop`, in the type of the products dweight, dbias, dsum  [width], to which this call's rows are added; dbias may be
/// null. dsum: the sum of dx times
///           `drop` over the rows, which is the gradient of a bias in front; may be null
template <typename T>
struct LayerNormBackward {
  const float* x;
  const float* mean;
  const float* rstd;
  const float* weight;
  const T* dnormed;
  const float* dstream;
  float* dx;
  T* dx_low;
  float* dweight;
  float* dbias;
  float* dsum;
  std::int64_t rows, width;
  DropMask drop;
  bool centred = true;
  const float* dwhole = nullptr;
};

enum class Activation { kGeluTanh, kGelu, kSilu, kRelu };

/// `out = f(x + bias)`; gated, `out = f(gate) * up` of `x + bias = [gate, up]`.
///
/// x     [rows, width], or [rows, 2, width] when gated;  bias of one such row, or null
/// out   [rows, width]
template <typename T>
struct Activate {
  const T* x;
  const float* bias;
  T* out;
  std::int64_t rows, width;
  Activation activation;
  bool gated;
};

/// Its backward pass. dx is like x, and may be `dout` when nothing is gated; dbias, of one row of x: this call's rows
/// are added; null without a bias.
template <typename T>
struct ActivateBackward {
  const T* x;
  const float* bias;
  const T* dout;
  T* dx;
  float* dbias;
  std::int64_t rows, width;
  Activation activation;
  bool gated;
};

/// Splits the output of a joint projection of one sample into heads, adds its bias, and rotates query and key by their
/// positions (rotary embedding, Su et al. 2021, the two halves against each other) where `cos` is given.
///
/// qkv       [positions, heads + 2 kv_heads, width]: all of q, then k, then v; bias [heads + 2 kv_heads, width] or null
/// cos, sin  [positions, width / 2] or null
/// q, k, v   [heads, positions, width]; k and v have kv_heads
template <typename T>
struct SplitHeads {
  const T* qkv;
  const float* bias;
  const float* cos;
  const float* sin;
  T *q, *k, *v;
  std::int64_t positions, heads, kv_heads, width;
};

/// Its backward pass: joins the gradients of q, k and v as [positions, heads + 2 kv_heads, width].
/// dbias [heads + 2 kv_heads, width]: sums over this sample's positions are added; may be null.
template <typename T>
struct JoinHeads {
  const T *dq, *dk, *dv;
  const float* cos;
  const float* sin;
  T* dqkv;
  float* dbias;
  std::int64_t positions, heads, kv_heads, width;
};

/// Rows of a matrix of attention, from position `first` on: row r looks at columns 0 to first + r, with a `window` at
/// the last `window` of them; where it is not causal at all columns, or at `window` on either side of first + r. One
/// every `stride` elements, of which the first `columns` are written.
struct AttentionRows {
  std::int64_t first, rows, columns, stride;
  std::int64_t window = 0;
  bool causal = true;
};

/// `c = a b^T`, summed in float32. Each element is summed in an order that depends on the place along the depth alone:
/// a product may be cut into rows and columns in any way, and zeros may follow along the depth, with the same bits.
///
/// a  [rows, depth], a row every `a_row` elements;  b [columns, depth], a row every `b_row`
/// c  [rows, columns], a row every `c_row`
template <typename T>
struct Dots {
  const T* a;
  std::int64_t a_row;
  const T* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, columns, depth;
};

/// The same of rows of b in 4 bits: blocks of numbers with a scale each, which stand for `values[code] * scale`,
/// rounded to T. The bits are those of dots() of these.
///
/// codes   two in a byte, the first one in its upper half; a row every `depth / 2` bytes
/// scales  a row every `depth / kBlock`
/// values  [16]
/// depth   a multiple of kBlock
template <typename T>
struct CodedDots {
  static constexpr std::int64_t kBlock = 64;
  const T* a;
  std::int64_t a_row;
  const std::uint8_t* codes;
  const float *scales, *values;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, columns, depth;
};

/// The kernels for rows of type T (float or Bf16), compiled for what this processor has.
template <typename T>
struct TransformerKernels {
  void (*layer_norm)(const LayerNorm<T>&);
  void (*layer_norm_backward)(const LayerNormBackward<T>&);

  /// `out = x + drop * (branch + bias)`: the residual stream after a block. [rows, width]; bias may be null.
  void (*add_branch)(const float* x, const T* branch, const float* bias, float* out, std::int64_t rows,
                     std::int64_t width, const DropMask& drop);

  void (*activate)(const Activate<T>&);
  void (*activate_backward)(const ActivateBackward<T>&);

  void (*split_heads)(const SplitHeads<T>&);
  void (*join_heads)(const JoinHeads<T>&);

  /// Softmax of `scale * scores` over what each row looks at, in place; the other columns become 0.
  void (*softmax)(T* scores, float scale, const AttentionRows& shape);
  /// Its backward pass, in place of `dprobs`: `scale * probs * (dprobs - sum(probs * dprobs))`;
  /// probs is 0 where a row does not look.
  void (*softmax_backward)(const T* probs, T* dprobs, float scale, const AttentionRows& shape);

  /// `to = drop * from`, the first `columns` of rows that begin every `stride` elements; `to` may be `from`.
  void (*drop)(const T* from, T* to, const DropMask& drop, std::int64_t rows, std::int64_t columns,
               std::int64_t stride);

  /// Cross entropy of each row of logits, and in their place `scale` times its gradient, softmax minus the target's
  /// indicator.
  ///
  /// logits   [rows, classes]
  /// target   [rows]; a row whose target is `ignored` has loss and gradient 0
  /// Returns  the sum of the rows' losses
  double (*cross_entropy)(T* logits, const std::int64_t* target, std::int64_t ignored, float scale, std::int64_t rows,
                          std::int64_t classes);

  /// sum [width] += the sum over the rows of `drop * x`, [rows, width] float32; `low` [rows, width] or null: the same
  /// numbers as T.
  void (*sum_rows)(const float* x, float* sum, T* low, std::int64_t rows, std::int64_t width, const DropMask& drop);
  /// to[i] = from[i], rounded to nearest even; and back.
  void (*lower)(const float* from, T* to, std::int64_t size);
  void (*raise)(const T* from, float* to, std::int64_t size);

  void (*dots)(const Dots<T>&);
  void (*coded_dots)(const CodedDots<T>&);  ///< null: this processor has none that is worth it
};

template <typename T>
const TransformerKernels<T>& transformer();

}  // namespace components::kernels
