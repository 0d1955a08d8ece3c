// The kernels of images.h, included once for each level of the processor.

#include "components/kernels/packs.inl"

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

/// Rows that are added up in float32 before they go into a double.
constexpr std::int64_t kBlock = 64;
/// Packs of a row that are summed side by side: whole cache lines, and few enough registers.
constexpr std::int64_t kSide = 4;

ROUX_INLINE void add_to(double* sums, Floats x, std::int64_t size) {
  float lanes[kPack];
  store(lanes, x);
  for (std::int64_t i = 0; i < size; ++i) sums[i] += static_cast<double>(lanes[i]);
}

/// Two sums over rows for `packs` packs of channels from `from` on: `terms(row, channel, size, a, b)` gives what a row
/// adds. `size` < kPack: the last channels, in part.
template <std::int64_t packs, typename Terms>
ROUX_INLINE void sum_columns(std::int64_t rows, std::int64_t from, std::int64_t size, double* first, double* second,
                             const Terms& terms) {
  for (std::int64_t begin = 0; begin < rows; begin += kBlock) {
    const std::int64_t end = begin + kBlock < rows ? begin + kBlock : rows;
    Floats a[packs] = {}, b[packs] = {};
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t p = 0; p < packs; ++p) terms(row, from + p * kPack, size, a[p], b[p]);
    }
    for (std::int64_t p = 0; p < packs; ++p) {
      add_to(first + from + p * kPack, a[p], size);
      add_to(second + from + p * kPack, b[p], size);
    }
  }
}

template <typename Terms>
ROUX_INLINE void sum_rows_of(std::int64_t rows, std::int64_t width, double* first, double* second, const Terms& terms) {
  std::int64_t from = 0;
  for (; from + kSide * kPack <= width; from += kSide * kPack) {
    sum_columns<kSide>(rows, from, kPack, first, second, terms);
  }
  for (; from + kPack <= width; from += kPack) sum_columns<1>(rows, from, kPack, first, second, terms);
  if (from < width) sum_columns<1>(rows, from, width - from, first, second, terms);
}

template <typename T>
ROUX_INLINE Floats load_up_to(const T* from, std::int64_t size) {
  return size == kPack ? load(from) : load_some(from, size);
}

template <typename T>
ROUX_INLINE void store_up_to(T* to, Floats x, std::int64_t size) {
  if (size == kPack) {
    store(to, x);
  } else {
    store_some(to, x, size);
  }
}

template <typename T>
void channel_sums(const ChannelSums<T>& a) {
  sum_rows_of(
      a.rows, a.width, a.sum, a.squares,
      [&](std::int64_t row, std::int64_t channel, std::int64_t size, Floats & sum, Floats & squares)
          __attribute__((always_inline)) {
            const Floats x = load_up_to(a.x + row * a.width + channel, size) - load_up_to(a.pivot + channel, size);
            sum += x;
            squares += x * x;
          });
}

template <typename T>
void scale_shift(const ScaleShift<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.width;
    const T* addend = a.addend != nullptr ? a.addend + row * a.width : nullptr;
    T* y = a.y + row * a.width;
    ROUX_EACH(a.width) {
      Floats sum = get(x) * get(a.scale) + get(a.shift);
      if (addend != nullptr) sum += get(addend);
      // Not a number stays what it is.
      if (a.relu) sum = sum <= 0.0F ? Floats{} : sum;
      put(y, sum);
    });
  }
}

/// The gradient before a ReLU that cut where `y` is not positive.
ROUX_INLINE Floats uncut(Floats dy, Floats y) { return y <= 0.0F ? Floats{} : dy; }

template <typename T>
void scale_shift_sums(const ScaleShiftSums<T>& a) {
  sum_rows_of(
      a.rows, a.width, a.sum, a.products,
      [&](std::int64_t row, std::int64_t channel, std::int64_t size, Floats & sum, Floats & products)
          __attribute__((always_inline)) {
            const std::int64_t at = row * a.width + channel;
            const Floats x = load_up_to(a.x + at, size);
            Floats g = load_up_to(a.dy + at, size);
            if (a.y != nullptr) {
              g = uncut(g, load_up_to(a.y + at, size));
            } else if (a.scale != nullptr) {
              g = uncut(g, x * load_up_to(a.scale + channel, size) + load_up_to(a.shift + channel, size));
            }
            if (a.g != nullptr) store_up_to(a.g + at, g, size);
            sum += g;
            products += g * (x - load_up_to(a.mean + channel, size));
          });
}

template <typename T>
void batch_norm_backward(const BatchNormBackward<T>& a) {
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const T* x = a.x + row * a.width;
    const T* dy = a.dy + row * a.width;
    T* dx = a.dx + row * a.width;
    ROUX_EACH(a.width) {
      const Floats at = get(x);
      Floats g = get(dy);
      if (a.scale != nullptr) g = uncut(g, at * get(a.scale) + get(a.shift));
      put(dx, g * get(a.of_gradient) + (at * get(a.of_x) + get(a.constant)));
    });
  }
}

template <typename T>
constexpr ImageKernels<T> kernels_for() {
  return {&channel_sums<T>, &scale_shift<T>, &scale_shift_sums<T>, &batch_norm_backward<T>};
}

}  // namespace
}  // namespace ROUX_LEVEL

const ImageLevel ROUX_LEVEL_TABLE = {ROUX_LEVEL::kernels_for<float>(), ROUX_LEVEL::kernels_for<Bf16>()};

}  // namespace components::kernels
