// The kernels of transformer.h, included once for each level of the processor.

#include "components/kernels/packs.inl"

#include "components/kernels/dots.inl"  // written in packs
#include "components/kernels/drop.inl"

#include "components/kernels/coded_dots.inl"  // written in dots

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

/// e^x to 2 ulp: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cephes' coefficients).
ROUX_INLINE Floats exponential(Floats x) {
  constexpr float kLog2E = 1.44269504088896341F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the lowest bits
  x = x < -87.3F ? all(-87.3F) : x;
  x = x > 88.3F ? all(88.3F) : x;
  const Floats shifted = x * kLog2E + kRound;
  const Floats n = shifted - kRound;
  Floats r = x - n * kLn2High;
  r = r - n * kLn2Low;
  Floats p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + (r + 1.0F);
  return floats_of(bits_of(p) + (bits_of(shifted) << 23));
}

/// The logistic function.
ROUX_INLINE Floats logistic(Floats x) { return 1.0F / (1.0F + exponential(-1.0F * x)); }

/// GELU in its tanh form (Hendrycks & Gimpel 2016; torch's approximate="tanh"): 0.5 (1 + tanh u) is the logistic
/// function of 2u.
struct GeluTanh {
  static constexpr float kA = 0.7978845608028654F;  // sqrt(2 / pi)
  static constexpr float kB = 0.044715F;

  ROUX_INLINE static Floats share(Floats x) {
    const Floats u = kA * (kB * x * x * x + x);
    return 1.0F / (1.0F + exponential(-2.0F * u));
  }
  ROUX_INLINE static Floats value(Floats x) { return x * share(x); }
  ROUX_INLINE static Floats slope(Floats x) {
    const Floats s = share(x);
    const Floats du = kA * (3.0F * kB * x * x + 1.0F);
    return 2.0F * x * s * (1.0F - s) * du + s;
  }
};

/// GELU by the normal distribution, whose tail is Abramowitz & Stegun's 7.1.26: 1.5e-7 of 1.
struct Gelu {
  ROUX_INLINE static Floats share(Floats x, Floats bell) {
    const Floats size = x < 0.0F ? -1.0F * x : x;
    const Floats t = 1.0F / (size * (0.3275911F * 0.7071067811865476F) + 1.0F);
    Floats p = t * 1.061405429F - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const Floats tail = 0.5F * p * t * bell;
    return x < 0.0F ? tail : 1.0F - tail;
  }
  ROUX_INLINE static Floats bell(Floats x) { return exponential(-0.5F * x * x); }
  ROUX_INLINE static Floats value(Floats x) { return x * share(x, bell(x)); }
  ROUX_INLINE static Floats slope(Floats x) {
    constexpr float kDensity = 0.3989422804014327F;  // 1 / sqrt(2 pi)
    const Floats b = bell(x);
    return share(x, b) + kDensity * x * b;
  }
};

struct Silu {
  ROUX_INLINE static Floats value(Floats x) { return x * logistic(x); }
  ROUX_INLINE static Floats slope(Floats x) {
    const Floats s = logistic(x);
    return s * (x * (1.0F - s) + 1.0F);
  }
};

struct Relu {
  ROUX_INLINE static Floats value(Floats x) { return x > 0.0F ? x : Floats{}; }
  ROUX_INLINE static Floats slope(Floats x) { return x > 0.0F ? all(1.0F) : Floats{}; }
};

template <typename T>
void layer_norm(const LayerNorm<T>& a) {
  const auto width = static_cast<float>(a.width);
  const auto eps = static_cast<float>(a.eps);
  DropRow drop(a.drop, a.width);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.width;
    Floats total = {};
    if (a.branch != nullptr) {
      const T* branch = a.branch + row * a.width;
      float* sum = a.sum + row * a.width;
      const float* const factors = drop.factors(row);
      ROUX_EACH(a.width) {
        Floats added = get(branch);
        if (a.branch_bias != nullptr) added += get(a.branch_bias);
        if (factors != nullptr) added *= get(factors);
        added += get(x);
        put(sum, added);
        total += added;
      });
      x = sum;
    } else {
      ROUX_EACH(a.width) { total += get(x); });
    }
    const float mean = a.centred ? add_up(total) / width : 0.0F;
    // Of the part of a pack that is no element, (0 - mean)^2 has to be taken off again.
    Floats squares = {};
    ROUX_EACH(a.width) { squares += (get(x) - mean) * (get(x) - mean); });
    const auto empty = static_cast<float>((kPack - a.width % kPack) % kPack);
    const float variance = (add_up(squares) - empty * mean * mean) / width;
    const float rstd = 1.0F / std::sqrt((variance > 0 ? variance : 0) + eps);
    a.mean[row] = mean;
    a.rstd[row] = rstd;
    T* normed = a.normed != nullptr ? a.normed + row * a.width : nullptr;
    if (a.whole == nullptr) {  // apart: with a condition more in it the compiler rounds y in another way
      ROUX_EACH(a.width) {
        Floats y = (get(x) - mean) * rstd * get(a.weight);
        if (a.bias != nullptr) y += get(a.bias);
        put(normed, y);
      });
      continue;
    }
    float* whole = a.whole + row * a.width;
    ROUX_EACH(a.width) {
      Floats y = (get(x) - mean) * rstd * get(a.weight);
      if (a.bias != nullptr) y += get(a.bias);
      if (normed != nullptr) put(normed, y);
      put(whole, y);
    });
  }
}

/// `gradient(get, at)`: that of the norm's output, at the element `at` of all rows on. A loop for each kind of it: with
/// a condition in the loop the compiler would round in another way.
template <typename T, typename Gradient>
ROUX_INLINE void layer_norm_backward_of(const LayerNormBackward<T>& a, const Gradient& gradient) {
  const auto width = static_cast<float>(a.width);
  DropRow drop(a.drop, a.width);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* x = a.x + row * a.width;
    const float* const factors = drop.factors(row);
    const std::int64_t at = row * a.width;
    const float* dstream = a.dstream != nullptr ? a.dstream + row * a.width : nullptr;
    float* dx = a.dx + row * a.width;
    T* low = a.dx_low != nullptr ? a.dx_low + row * a.width : nullptr;
    const float mean = a.mean[row], rstd = a.rstd[row];
    Floats sums = {}, dots = {};
    ROUX_EACH(a.width) {
      const Floats d = gradient(get, at), normed = (get(x) - mean) * rstd;
      const Floats scaled = d * get(a.weight);  // 0 beyond the row
      sums += scaled;
      dots += scaled * normed;
      put(a.dweight, get(a.dweight) + d * normed);
      if (a.dbias != nullptr) put(a.dbias, get(a.dbias) + d);
    });
    const float sum = a.centred ? add_up(sums) / width : 0.0F, dot = add_up(dots) / width;
    ROUX_EACH(a.width) {
      const Floats normed = (get(x) - mean) * rstd;
      Floats d = rstd * (gradient(get, at) * get(a.weight) - (normed * dot + sum));
      if (dstream != nullptr) d += get(dstream);
      put(dx, d);
      if (factors != nullptr) d *= get(factors);
      if (low != nullptr) put(low, d);
      if (a.dsum != nullptr) put(a.dsum, get(a.dsum) + d);
    });
  }
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& a) {
  const T* const low = a.dnormed;
  const float* const whole = a.dwhole;
  if (whole == nullptr) {
    layer_norm_backward_of(
        a, [&](const auto& get, std::int64_t at) __attribute__((always_inline)) { return get(low + at); });
  } else if (low == nullptr) {
    layer_norm_backward_of(
        a, [&](const auto& get, std::int64_t at) __attribute__((always_inline)) { return get(whole + at); });
  } else {
    layer_norm_backward_of(
        a, [&](const auto& get, std::int64_t at)
               __attribute__((always_inline)) { return get(low + at) + get(whole + at); });
  }
}

template <typename T>
void add_branch(const float* x, const T* branch, const float* bias, float* out, std::int64_t rows, std::int64_t width,
                const DropMask& mask) {
  DropRow drop(mask, width);
  for (std::int64_t row = 0; row < rows; ++row, x += width, branch += width, out += width) {
    const float* const factors = drop.factors(row);
    ROUX_EACH(width) {
      Floats added = get(branch);
      if (bias != nullptr) added += get(bias);
      if (factors != nullptr) added *= get(factors);
      put(out, added + get(x));
    });
  }
}

template <typename F, typename T>
void activate_by(const Activate<T>& a) {
  const float* const up_bias = a.bias != nullptr ? a.bias + a.width : nullptr;
  const std::int64_t from = a.gated ? 2 * a.width : a.width;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* const x = a.x + row * from;
    T* const out = a.out + row * a.width;
    ROUX_EACH(a.width) {
      Floats in = get(x);
      if (a.bias != nullptr) in += get(a.bias);
      Floats y = F::value(in);
      if (a.gated) {
        Floats up = get(x + a.width);
        if (up_bias != nullptr) up += get(up_bias);
        y *= up;
      }
      put(out, y);
    });
  }
}

template <typename F, typename T>
void activate_backward_by(const ActivateBackward<T>& a) {
  const float* const up_bias = a.bias != nullptr ? a.bias + a.width : nullptr;
  float* const up_sums = a.dbias != nullptr ? a.dbias + a.width : nullptr;
  const std::int64_t from = a.gated ? 2 * a.width : a.width;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* const x = a.x + row * from;
    const T* const dout = a.dout + row * a.width;
    T* const dx = a.dx + row * from;
    ROUX_EACH(a.width) {
      Floats in = get(x);
      if (a.bias != nullptr) in += get(a.bias);
      Floats d = get(dout);
      if (a.gated) {
        Floats up = get(x + a.width);
        if (up_bias != nullptr) up += get(up_bias);
        const Floats dup = d * F::value(in);
        put(dx + a.width, dup);
        if (up_sums != nullptr) put(up_sums, get(up_sums) + dup);
        d *= up;
      }
      d *= F::slope(in);
      put(dx, d);
      if (a.dbias != nullptr) put(a.dbias, get(a.dbias) + d);
    });
  }
}

template <typename T>
void activate(const Activate<T>& a) {
  switch (a.activation) {
    case Activation::kGeluTanh: return activate_by<GeluTanh>(a);
    case Activation::kGelu: return activate_by<Gelu>(a);
    case Activation::kSilu: return activate_by<Silu>(a);
    case Activation::kRelu: return activate_by<Relu>(a);
  }
}

template <typename T>
void activate_backward(const ActivateBackward<T>& a) {
  switch (a.activation) {
    case Activation::kGeluTanh: return activate_backward_by<GeluTanh>(a);
    case Activation::kGelu: return activate_backward_by<Gelu>(a);
    case Activation::kSilu: return activate_backward_by<Silu>(a);
    case Activation::kRelu: return activate_backward_by<Relu>(a);
  }
}

/// One head at one position: adds the bias, turns the halves against each other; `back` by the angle's opposite.
template <typename T>
ROUX_INLINE void turn(const T* from, const float* bias, const float* cos, const float* sin, T* to, std::int64_t half,
                      float back) {
  ROUX_EACH(half) {
    Floats a = get(from), b = get(from + half);
    if (bias != nullptr) {
      a += get(bias);
      b += get(bias + half);
    }
    const Floats c = get(cos), s = get(sin) * back;
    put(to, a * c - b * s);
    put(to + half, b * c + a * s);
  });
}

template <typename T>
void split_heads(const SplitHeads<T>& a) {
  const std::int64_t half = a.width / 2, of_row = (a.heads + 2 * a.kv_heads) * a.width;
  for (std::int64_t t = 0; t < a.positions; ++t) {
    std::int64_t first = 0;  // of the part, in a row
    for (std::int64_t part = 0; part < 3; ++part) {
      T* const target = part == 0 ? a.q : part == 1 ? a.k : a.v;
      const std::int64_t heads = part == 0 ? a.heads : a.kv_heads;
      for (std::int64_t h = 0; h < heads; ++h) {
        const T* from = a.qkv + t * of_row + first + h * a.width;
        const float* bias = a.bias != nullptr ? a.bias + first + h * a.width : nullptr;
        T* to = target + (h * a.positions + t) * a.width;
        if (a.cos != nullptr && part < 2) {
          turn(from, bias, a.cos + t * half, a.sin + t * half, to, half, 1.0F);
        } else {
          ROUX_EACH(a.width) {
            Floats x = get(from);
            if (bias != nullptr) x += get(bias);
            put(to, x);
          });
        }
      }
      first += heads * a.width;
    }
  }
}

template <typename T>
void join_heads(const JoinHeads<T>& a) {
  const std::int64_t half = a.width / 2, of_row = (a.heads + 2 * a.kv_heads) * a.width;
  for (std::int64_t t = 0; t < a.positions; ++t) {
    std::int64_t first = 0;
    for (std::int64_t part = 0; part < 3; ++part) {
      const T* const source = part == 0 ? a.dq : part == 1 ? a.dk : a.dv;
      const std::int64_t heads = part == 0 ? a.heads : a.kv_heads;
      for (std::int64_t h = 0; h < heads; ++h) {
        const T* from = source + (h * a.positions + t) * a.width;
        T* to = a.dqkv + t * of_row + first + h * a.width;
        if (a.cos != nullptr && part < 2) {
          turn<T>(from, nullptr, a.cos + t * half, a.sin + t * half, to, half, -1.0F);
        } else {
          std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(a.width) * sizeof(T));
        }
        if (a.dbias == nullptr) continue;
        float* dbias = a.dbias + first + h * a.width;
        ROUX_EACH(a.width) { put(dbias, get(dbias) + get(to)); });
      }
      first += heads * a.width;
    }
  }
}

template <typename T>
ROUX_INLINE float greatest(const T* row, std::int64_t size) {
  const float none = -std::numeric_limits<float>::infinity();
  Floats most = all(none);
  std::int64_t i = 0;
  // A comparison waits for the one before, so four go on side by side.
  if (constexpr std::int64_t kAtOnce = 4 * kPack; size >= kAtOnce) {
    Floats a = most, b = most, c = most;
    for (; i + kAtOnce <= size; i += kAtOnce) {
      most = larger(load(row + i), most);
      a = larger(load(row + i + kPack), a);
      b = larger(load(row + i + 2 * kPack), b);
      c = larger(load(row + i + 3 * kPack), c);
    }
    most = larger(larger(most, a), larger(b, c));
  }
  for (; i + kPack <= size; i += kPack) most = larger(load(row + i), most);
  if (i < size) most = larger(load_some(row + i, size - i, none), most);
  return largest(most);
}

/// e^(scale (x - most)) of each, to `to`; returns their sum.
template <typename T>
ROUX_INLINE float exponentials(const T* row, float most, float scale, std::int64_t size, float* to) {
  Floats sum = {};
  std::int64_t i = 0;
  for (; i + kPack <= size; i += kPack) {
    const Floats e = exponential((load(row + i) - most) * scale);
    sum += e;
    store(to + i, e);
  }
  float total = add_up(sum);
  if (i < size) {
    store_some(to + i, exponential((load_some(row + i, size - i) - most) * scale), size - i);
    for (; i < size; ++i) total += to[i];
  }
  return total;
}

/// Where a row's exponentials wait for their sum: in the row's own place, or beside it where that would round them.
ROUX_INLINE float* room_beside(float* row, std::vector<float>&, std::int64_t) { return row; }
ROUX_INLINE float* room_beside(Bf16*, std::vector<float>& room, std::int64_t size) {
  if (room.empty()) room.resize(static_cast<std::size_t>(size));
  return room.data();
}

/// Minus infinity: its exponential adds nothing to a sum.
template <typename T>
constexpr T kNever{};
template <>
constexpr float kNever<float> = -std::numeric_limits<float>::infinity();
template <>
constexpr Bf16 kNever<Bf16> = Bf16{0xFF80};

/// Gives what a row does not look at, up to the end of the pack, a value that changes nothing: whole packs are faster.
/// Returns how much of the row is to be worked on.
template <typename T>
ROUX_INLINE std::int64_t fill_pack(T* row, std::int64_t seen, std::int64_t columns, T value) {
  const std::int64_t end = std::min((seen + kPack - 1) / kPack * kPack, columns);
  for (std::int64_t i = seen; i < end; ++i) row[i] = value;
  return end;
}

template <typename T>
ROUX_INLINE void hide_future(T* row, std::int64_t seen, std::int64_t columns) {
  std::memset(static_cast<void*>(row + seen), 0, static_cast<std::size_t>(columns - seen) * sizeof(T));
}

/// The column behind those that row `r` looks at.
ROUX_INLINE std::int64_t end_of_seen(const AttentionRows& shape, std::int64_t r) {
  const std::int64_t own = shape.first + r + 1;
  if (shape.causal) return own;
  return shape.window > 0 ? std::min(own + shape.window, shape.columns) : shape.columns;
}

template <typename T>
void softmax(T* scores, float scale, const AttentionRows& shape) {
  std::vector<float> room;
  // With a window: at how many columns it looks up to its own, which is one of them.
  const std::int64_t behind = shape.causal ? shape.window : shape.window + 1;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    T* row = scores + r * shape.stride;
    float* const e = room_beside(row, room, shape.columns);
    const std::int64_t seen = end_of_seen(shape, r), end = fill_pack(row, seen, shape.columns, kNever<T>);
    const std::int64_t unseen = shape.first + r + 1 - behind;
    if (shape.window > 0 && unseen > 0) std::fill_n(row, unseen, kNever<T>);
    const float share = 1.0F / exponentials(row, greatest(row, end), scale, end, e);
    ROUX_EACH(end) { put(row, get(e) * share); });
    hide_future(row, seen, shape.columns);
  }
}

template <typename T>
void softmax_backward(const T* probs, T* dprobs, float scale, const AttentionRows& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* p = probs + r * shape.stride;
    T* d = dprobs + r * shape.stride;
    const std::int64_t seen = end_of_seen(shape, r), end = fill_pack(d, seen, shape.columns, T{});
    Floats dots = {};
    ROUX_EACH(end) { dots += get(p) * get(d); });
    const float dot = add_up(dots);
    ROUX_EACH(end) { put(d, scale * get(p) * (get(d) - dot)); });
    hide_future(d, seen, shape.columns);
  }
}

template <typename T>
void drop(const T* from, T* to, const DropMask& mask, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  DropRow drop(mask, columns);
  for (std::int64_t row = 0; row < rows; ++row, from += stride, to += stride) {
    const float* const factors = drop.factors(row);
    ROUX_EACH(columns) { put(to, factors != nullptr ? get(from) * get(factors) : get(from)); });
  }
}

ROUX_INLINE float one(float x) { return x; }
ROUX_INLINE float one(Bf16 x) {
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
double cross_entropy(T* logits, const std::int64_t* target, std::int64_t ignored, float scale, std::int64_t rows,
                     std::int64_t classes) {
  double loss = 0;
  std::vector<float> room;
  for (std::int64_t r = 0; r < rows; ++r) {
    T* row = logits + r * classes;
    float* const e = room_beside(row, room, classes);
    if (target[r] == ignored) {
      std::memset(static_cast<void*>(row), 0, static_cast<std::size_t>(classes) * sizeof(T));
      continue;
    }
    const float most = greatest(row, classes);
    const float of_target = one(row[target[r]]) - most;
    const float sum = exponentials(row, most, 1.0F, classes, e);
    loss += static_cast<double>(std::log(sum) - of_target);
    const float share = scale / sum;
    ROUX_EACH(classes) { put(row, get(e) * share); });
    store_some(row + target[r], all(std::exp(of_target) * share - scale), 1);
  }
  return loss;
}

template <typename T>
void sum_rows(const float* x, float* sum, T* low, std::int64_t rows, std::int64_t width, const DropMask& mask) {
  DropRow drop(mask, width);
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
    const float* const factors = drop.factors(row);
    ROUX_EACH(width) {
      Floats term = get(x);
      if (factors != nullptr) term *= get(factors);
      put(sum, get(sum) + term);
      if (low != nullptr) put(low, term);
    });
    if (low != nullptr) low += width;
  }
}

template <typename T>
void lower(const float* from, T* to, std::int64_t size) {
  ROUX_EACH(size) { put(to, get(from)); });
}

template <typename T>
void raise(const T* from, float* to, std::int64_t size) {
  ROUX_EACH(size) { put(to, get(from)); });
}

template <typename T>
constexpr TransformerKernels<T> kernels_for() {
  return {&layer_norm<T>,
          &layer_norm_backward<T>,
          &add_branch<T>,
          &activate<T>,
          &activate_backward<T>,
          &split_heads<T>,
          &join_heads<T>,
          &softmax<T>,
          &softmax_backward<T>,
          &drop<T>,
          &cross_entropy<T>,
          &sum_rows<T>,
          &lower<T>,
          &raise<T>,
          &dots<T>,
          kCodedDots<T>};
}

}  // namespace
}  // namespace ROUX_LEVEL

const TransformerLevel ROUX_LEVEL_TABLE = {ROUX_LEVEL::kernels_for<float>(), ROUX_LEVEL::kernels_for<Bf16>()};

}  // namespace components::kernels
