#include "components/kernels/transformer.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "components/kernels/simd.h"

// Sums run in kLanes separate partial sums, which the compiler may keep in one vector register; added up in a fixed
// order at the end. Widths that are no multiple of it end in a scalar loop.

namespace components::kernels {
namespace {

#define ROUX_INLINE [[gnu::always_inline]] inline

constexpr std::int64_t kLanes = 16;

ROUX_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

ROUX_INLINE std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

ROUX_INLINE float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

ROUX_INLINE float load(float value) { return value; }
ROUX_INLINE float load(Bf16 value) { return float_of(static_cast<std::uint32_t>(value.bits) << 16); }

ROUX_INLINE void store(float& to, float value) { to = value; }
ROUX_INLINE void store(Bf16& to, float value) {
  const std::uint32_t bits = bits_of(value);
  // NaN would lose its payload's upper bits and could become infinite.
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40U;
  to.bits = static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded);
}

/// e^x to 2 ulp: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cephes' coefficients).
ROUX_INLINE float exponential(float x) {
  constexpr float kLog2E = 1.44269504088896341F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the lowest bits
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.3F ? 88.3F : x;
  const float shifted = fma(x, kLog2E, kRound);
  const float n = shifted - kRound;
  float r = fma(n, -kLn2High, x);
  r = fma(n, -kLn2Low, r);
  float p = fma(1.9875691500e-4F, r, 1.3981999507e-3F);
  p = fma(p, r, 8.3334519073e-3F);
  p = fma(p, r, 4.1665795894e-2F);
  p = fma(p, r, 1.6666665459e-1F);
  p = fma(p, r, 5.0000001201e-1F);
  p = fma(p, r * r, r + 1.0F);
  return float_of(bits_of(p) + (bits_of(shifted) << 23));
}

ROUX_INLINE float add_up(const float* lanes) {
  float sum = 0;
  for (std::int64_t l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

constexpr float kGeluA = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kGeluB = 0.044715F;

/// x * s(2u) is the tanh form: 0.5 (1 + tanh u) is the logistic function of 2u.
ROUX_INLINE float gelu(float x) {
  const float u = kGeluA * fma(kGeluB * x * x, x, x);
  return x / (1.0F + exponential(-2.0F * u));
}

ROUX_INLINE float gelu_slope(float x) {
  const float u = kGeluA * fma(kGeluB * x * x, x, x);
  const float s = 1.0F / (1.0F + exponential(-2.0F * u));
  const float du = kGeluA * fma(3.0F * kGeluB * x, x, 1.0F);
  return fma(2.0F * x * s * (1.0F - s), du, s);
}

template <typename T>
ROUX_INLINE void layer_norm_rows(const LayerNorm<T>& a) {
  const auto width = static_cast<float>(a.width);
  const auto eps = static_cast<float>(a.eps);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* __restrict x = a.x + row * a.width;
    if (a.branch != nullptr) {
      const T* __restrict branch = a.branch + row * a.width;
      float* __restrict sum = a.sum + row * a.width;
      const float* __restrict bias = a.branch_bias;
      if (bias != nullptr) {
        for (std::int64_t i = 0; i < a.width; ++i) sum[i] = x[i] + (load(branch[i]) + bias[i]);
      } else {
        for (std::int64_t i = 0; i < a.width; ++i) sum[i] = x[i] + load(branch[i]);
      }
      x = sum;
    }
    float lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= a.width; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += x[i + l];
    }
    float total = add_up(lanes);
    for (; i < a.width; ++i) total += x[i];
    const float mean = total / width;
    float squares[kLanes] = {};
    for (i = 0; i + kLanes <= a.width; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) squares[l] = fma(x[i + l] - mean, x[i + l] - mean, squares[l]);
    }
    float variance = add_up(squares);
    for (; i < a.width; ++i) variance = fma(x[i] - mean, x[i] - mean, variance);
    const float rstd = 1.0F / std::sqrt(variance / width + eps);
    a.mean[row] = mean;
    a.rstd[row] = rstd;
    T* __restrict normed = a.normed + row * a.width;
    const float* __restrict weight = a.weight;
    const float* __restrict bias = a.bias;
    if (bias != nullptr) {
      for (i = 0; i < a.width; ++i) store(normed[i], fma((x[i] - mean) * rstd, weight[i], bias[i]));
    } else {
      for (i = 0; i < a.width; ++i) store(normed[i], (x[i] - mean) * rstd * weight[i]);
    }
  }
}

template <typename T>
ROUX_INLINE void layer_norm_backward_rows(const LayerNormBackward<T>& a) {
  const auto width = static_cast<float>(a.width);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* __restrict x = a.x + row * a.width;
    const T* __restrict dnormed = a.dnormed + row * a.width;
    const float* dstream = a.dstream != nullptr ? a.dstream + row * a.width : nullptr;
    float* dx = a.dx + row * a.width;
    const float* __restrict weight = a.weight;
    float* __restrict dweight = a.dweight;
    float* __restrict dbias = a.dbias;
    const float mean = a.mean[row], rstd = a.rstd[row];
    float dots[kLanes] = {}, sums[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= a.width; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) {
        const float scaled = load(dnormed[i + l]) * weight[i + l];
        sums[l] += scaled;
        dots[l] = fma(scaled, (x[i + l] - mean) * rstd, dots[l]);
      }
    }
    float sum = add_up(sums), dot = add_up(dots);
    for (; i < a.width; ++i) {
      const float scaled = load(dnormed[i]) * weight[i];
      sum += scaled;
      dot = fma(scaled, (x[i] - mean) * rstd, dot);
    }
    sum /= width;
    dot /= width;
    for (i = 0; i < a.width; ++i) {
      dweight[i] = fma(load(dnormed[i]), (x[i] - mean) * rstd, dweight[i]);
    }
    if (dbias != nullptr) {
      for (i = 0; i < a.width; ++i) dbias[i] += load(dnormed[i]);
    }
    if (dstream != nullptr) {
      for (i = 0; i < a.width; ++i) {
        const float normed = (x[i] - mean) * rstd;
        dx[i] = fma(rstd, fma(load(dnormed[i]), weight[i], -fma(normed, dot, sum)), dstream[i]);
      }
    } else {
      for (i = 0; i < a.width; ++i) {
        const float normed = (x[i] - mean) * rstd;
        dx[i] = rstd * fma(load(dnormed[i]), weight[i], -fma(normed, dot, sum));
      }
    }
    if (a.dx_low != nullptr) {
      T* __restrict low = a.dx_low + row * a.width;
      for (i = 0; i < a.width; ++i) store(low[i], dx[i]);
    }
    if (a.dsum != nullptr) {
      float* __restrict dsum = a.dsum;
      for (i = 0; i < a.width; ++i) dsum[i] += dx[i];
    }
  }
}

template <typename T>
ROUX_INLINE void add_branch_rows(const float* __restrict x, const T* __restrict branch, const float* __restrict bias,
                                 float* __restrict out, std::int64_t rows, std::int64_t width) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < rows * width; ++i) out[i] = x[i] + load(branch[i]);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row, x += width, branch += width, out += width) {
    for (std::int64_t i = 0; i < width; ++i) out[i] = x[i] + (load(branch[i]) + bias[i]);
  }
}

template <typename T>
ROUX_INLINE void bias_gelu_rows(const T* __restrict x, const float* __restrict bias, T* __restrict out,
                                std::int64_t rows, std::int64_t width) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < rows * width; ++i) store(out[i], gelu(load(x[i])));
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row, x += width, out += width) {
    for (std::int64_t i = 0; i < width; ++i) store(out[i], gelu(load(x[i]) + bias[i]));
  }
}

template <typename T>
ROUX_INLINE void bias_gelu_backward_rows(const T* __restrict x, const float* __restrict bias, const T* dout, T* dx,
                                         float* __restrict dbias, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, dout += width, dx += width) {
    if (bias == nullptr) {
#pragma GCC ivdep
      for (std::int64_t i = 0; i < width; ++i) store(dx[i], load(dout[i]) * gelu_slope(load(x[i])));
      continue;
    }
#pragma GCC ivdep
    for (std::int64_t i = 0; i < width; ++i) {
      const float d = load(dout[i]) * gelu_slope(load(x[i]) + bias[i]);
      store(dx[i], d);
      dbias[i] += d;
    }
  }
}

template <typename T>
ROUX_INLINE void add_rows(const T* __restrict x, float* __restrict sum, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
    for (std::int64_t i = 0; i < width; ++i) sum[i] += load(x[i]);
  }
}

/// One head at one position: adds the bias, turns the halves against each other.
template <typename T>
ROUX_INLINE void turned(const T* __restrict from, const float* __restrict bias, const float* __restrict cos,
                        const float* __restrict sin, T* __restrict to, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    float a = load(from[i]), b = load(from[half + i]);
    if (bias != nullptr) {
      a += bias[i];
      b += bias[half + i];
    }
    store(to[i], fma(a, cos[i], -(b * sin[i])));
    store(to[half + i], fma(b, cos[i], a * sin[i]));
  }
}

template <typename T>
ROUX_INLINE void moved(const T* __restrict from, const float* __restrict bias, T* __restrict to, std::int64_t width) {
  if (bias == nullptr) {
    for (std::int64_t i = 0; i < width; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i < width; ++i) store(to[i], load(from[i]) + bias[i]);
}

template <typename T>
ROUX_INLINE void split_all(const SplitHeads<T>& a) {
  const std::int64_t half = a.width / 2, all = a.heads * a.width;
  for (std::int64_t t = 0; t < a.positions; ++t) {
    for (std::int64_t part = 0; part < 3; ++part) {
      T* const target = part == 0 ? a.q : part == 1 ? a.k : a.v;
      for (std::int64_t h = 0; h < a.heads; ++h) {
        const T* from = a.qkv + (t * 3 + part) * all + h * a.width;
        const float* bias = a.bias != nullptr ? a.bias + part * all + h * a.width : nullptr;
        T* to = target + (h * a.positions + t) * a.width;
        if (a.cos != nullptr && part < 2) {
          turned(from, bias, a.cos + t * half, a.sin + t * half, to, half);
        } else {
          moved(from, bias, to, a.width);
        }
      }
    }
  }
}

template <typename T>
ROUX_INLINE void join_all(const JoinHeads<T>& a) {
  const std::int64_t half = a.width / 2, all = a.heads * a.width;
  for (std::int64_t t = 0; t < a.positions; ++t) {
    for (std::int64_t part = 0; part < 3; ++part) {
      const T* const source = part == 0 ? a.dq : part == 1 ? a.dk : a.dv;
      for (std::int64_t h = 0; h < a.heads; ++h) {
        const T* __restrict from = source + (h * a.positions + t) * a.width;
        T* __restrict to = a.dqkv + (t * 3 + part) * all + h * a.width;
        if (a.cos != nullptr && part < 2) {
          const float* __restrict cos = a.cos + t * half;
          const float* __restrict sin = a.sin + t * half;
          for (std::int64_t i = 0; i < half; ++i) {
            const float da = load(from[i]), db = load(from[half + i]);
            store(to[i], fma(da, cos[i], db * sin[i]));
            store(to[half + i], fma(db, cos[i], -(da * sin[i])));
          }
        } else {
          for (std::int64_t i = 0; i < a.width; ++i) to[i] = from[i];
        }
        if (a.dbias != nullptr) {
          float* __restrict dbias = a.dbias + part * all + h * a.width;
          for (std::int64_t i = 0; i < a.width; ++i) dbias[i] += load(to[i]);
        }
      }
    }
  }
}

template <typename T>
ROUX_INLINE float greatest(const T* row, std::int64_t size) {
  float lanes[kLanes];
  for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = -std::numeric_limits<float>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const float value = load(row[i + l]);
      lanes[l] = value > lanes[l] ? value : lanes[l];
    }
  }
  float most = lanes[0];
  for (std::int64_t l = 1; l < kLanes; ++l) most = lanes[l] > most ? lanes[l] : most;
  for (; i < size; ++i) most = load(row[i]) > most ? load(row[i]) : most;
  return most;
}

/// The sum of e^(scale (x - most)).
template <typename T>
ROUX_INLINE float sum_of_exponentials(const T* __restrict row, float most, float scale, std::int64_t size) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += exponential((load(row[i + l]) - most) * scale);
  }
  float sum = add_up(lanes);
  for (; i < size; ++i) sum += exponential((load(row[i]) - most) * scale);
  return sum;
}

template <typename T>
ROUX_INLINE void causal_softmax_rows(T* scores, float scale, std::int64_t positions) {
  for (std::int64_t t = 0; t < positions; ++t) {
    T* row = scores + t * positions;
    const std::int64_t seen = t + 1;
    const float most = greatest(row, seen);
    const float share = 1.0F / sum_of_exponentials(row, most, scale, seen);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < seen; ++i) store(row[i], exponential((load(row[i]) - most) * scale) * share);
    std::memset(static_cast<void*>(row + seen), 0, static_cast<std::size_t>(positions - seen) * sizeof(T));
  }
}

template <typename T>
ROUX_INLINE void causal_softmax_backward_rows(const T* probs, T* dprobs, float scale, std::int64_t positions) {
  for (std::int64_t t = 0; t < positions; ++t) {
    const T* __restrict p = probs + t * positions;
    T* __restrict d = dprobs + t * positions;
    const std::int64_t seen = t + 1;
    float lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= seen; i += kLanes) {
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] = fma(load(p[i + l]), load(d[i + l]), lanes[l]);
    }
    float dot = add_up(lanes);
    for (; i < seen; ++i) dot = fma(load(p[i]), load(d[i]), dot);
    for (i = 0; i < seen; ++i) store(d[i], scale * load(p[i]) * (load(d[i]) - dot));
    std::memset(static_cast<void*>(d + seen), 0, static_cast<std::size_t>(positions - seen) * sizeof(T));
  }
}

template <typename T>
ROUX_INLINE double cross_entropy_rows(T* logits, const std::int64_t* target, std::int64_t ignored, float scale,
                                      std::int64_t rows, std::int64_t classes) {
  double loss = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    T* row = logits + r * classes;
    if (target[r] == ignored) {
      std::memset(static_cast<void*>(row), 0, static_cast<std::size_t>(classes) * sizeof(T));
      continue;
    }
    const float most = greatest(row, classes);
    const float sum = sum_of_exponentials(row, most, 1.0F, classes);
    const float of_target = load(row[target[r]]) - most;
    loss += static_cast<double>(std::log(sum) - of_target);
    const float share = scale / sum;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < classes; ++i) store(row[i], exponential(load(row[i]) - most) * share);
    store(row[target[r]], exponential(of_target) * share - scale);
  }
  return loss;
}

}  // namespace

// One line a type: templates cannot be compiled once for each level of the processor.

ROUX_SIMD void layer_norm(const LayerNorm<float>& a) { layer_norm_rows(a); }
ROUX_SIMD void layer_norm(const LayerNorm<Bf16>& a) { layer_norm_rows(a); }

ROUX_SIMD void layer_norm_backward(const LayerNormBackward<float>& a) { layer_norm_backward_rows(a); }
ROUX_SIMD void layer_norm_backward(const LayerNormBackward<Bf16>& a) { layer_norm_backward_rows(a); }

ROUX_SIMD void add_branch(const float* x, const float* branch, const float* bias, float* out, std::int64_t rows,
                          std::int64_t width) {
  add_branch_rows(x, branch, bias, out, rows, width);
}
ROUX_SIMD void add_branch(const float* x, const Bf16* branch, const float* bias, float* out, std::int64_t rows,
                          std::int64_t width) {
  add_branch_rows(x, branch, bias, out, rows, width);
}

ROUX_SIMD void bias_gelu(const float* x, const float* bias, float* out, std::int64_t rows, std::int64_t width) {
  bias_gelu_rows(x, bias, out, rows, width);
}
ROUX_SIMD void bias_gelu(const Bf16* x, const float* bias, Bf16* out, std::int64_t rows, std::int64_t width) {
  bias_gelu_rows(x, bias, out, rows, width);
}

ROUX_SIMD void bias_gelu_backward(const float* x, const float* bias, const float* dout, float* dx, float* dbias,
                                  std::int64_t rows, std::int64_t width) {
  bias_gelu_backward_rows(x, bias, dout, dx, dbias, rows, width);
}
ROUX_SIMD void bias_gelu_backward(const Bf16* x, const float* bias, const Bf16* dout, Bf16* dx, float* dbias,
                                  std::int64_t rows, std::int64_t width) {
  bias_gelu_backward_rows(x, bias, dout, dx, dbias, rows, width);
}

ROUX_SIMD void add_column_sums(const float* x, float* dsum, std::int64_t rows, std::int64_t width) {
  add_rows(x, dsum, rows, width);
}
ROUX_SIMD void add_column_sums(const Bf16* x, float* dsum, std::int64_t rows, std::int64_t width) {
  add_rows(x, dsum, rows, width);
}

ROUX_SIMD void split_heads(const SplitHeads<float>& a) { split_all(a); }
ROUX_SIMD void split_heads(const SplitHeads<Bf16>& a) { split_all(a); }

ROUX_SIMD void join_heads(const JoinHeads<float>& a) { join_all(a); }
ROUX_SIMD void join_heads(const JoinHeads<Bf16>& a) { join_all(a); }

ROUX_SIMD void causal_softmax(float* scores, float scale, std::int64_t positions) {
  causal_softmax_rows(scores, scale, positions);
}
ROUX_SIMD void causal_softmax(Bf16* scores, float scale, std::int64_t positions) {
  causal_softmax_rows(scores, scale, positions);
}

ROUX_SIMD void causal_softmax_backward(const float* probs, float* dprobs, float scale, std::int64_t positions) {
  causal_softmax_backward_rows(probs, dprobs, scale, positions);
}
ROUX_SIMD void causal_softmax_backward(const Bf16* probs, Bf16* dprobs, float scale, std::int64_t positions) {
  causal_softmax_backward_rows(probs, dprobs, scale, positions);
}

ROUX_SIMD double cross_entropy(float* logits, const std::int64_t* target, std::int64_t ignored, float scale,
                               std::int64_t rows, std::int64_t classes) {
  return cross_entropy_rows(logits, target, ignored, scale, rows, classes);
}
ROUX_SIMD double cross_entropy(Bf16* logits, const std::int64_t* target, std::int64_t ignored, float scale,
                               std::int64_t rows, std::int64_t classes) {
  return cross_entropy_rows(logits, target, ignored, scale, rows, classes);
}

ROUX_SIMD void convert(const float* from, Bf16* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) store(to[i], from[i]);
}
ROUX_SIMD void convert(const Bf16* from, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = load(from[i]);
}

}  // namespace components::kernels
