// Products of rows with rows in 4 bits: the same sums, in the same order, as dots.inl makes of what the codes stand
// for. What they stand for is looked up in registers and never written. Of the levels with 512 bits.

namespace components::kernels {
namespace ROUX_LEVEL {
namespace {

constexpr int kCodedRows = 6, kCodedColumns = 4, kCodedFewRowsColumns = 8;

#if ROUX_LANES == 16 && defined(__x86_64__)

// Of lanes: all. Without it GCC 12 warns of its own headers.
constexpr __mmask16 kAll = 0xFFFF;
constexpr __mmask8 kAllLong = 0xFF;

using LongBits = std::uint64_t __attribute__((vector_size(64)));
using CodePlaces = std::uint16_t __attribute__((vector_size(64)));

/// 16 values of a block in each of the type's places.
template <typename T>
ROUX_INLINE LaneBits values_of_block(const float* values, float scale) {
  Lanes scaled;
  std::memcpy(&scaled, values, sizeof scaled);
  scaled *= scale;
  const auto bits = reinterpret_cast<LaneBits>(scaled);
  if constexpr (std::is_same_v<T, float>) return bits;
#if defined(ROUX_ROUNDS_BF16)
  const auto low = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(scaled)));
  return reinterpret_cast<LaneBits>(_mm512_maskz_broadcast_i64x4(kAllLong, low));
#else
  return (bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U;
#endif
}

/// What one step along the depth reads of a row. A code is the upper half of a byte, then its lower half; what lies
/// above the bits of a place is not looked at, or chooses the same value again.
template <typename T>
ROUX_INLINE Lanes look_up(LaneBits values, const std::uint8_t* codes) {
#if defined(ROUX_ROUNDS_BF16)
  if constexpr (std::is_same_v<T, Bf16>) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    const auto bytes = reinterpret_cast<LaneBits>(_mm512_maskz_cvtepu8_epi32(kAll, some));
    const auto places = reinterpret_cast<CodePlaces>(bytes >> 4U | bytes << 16U);
    return reinterpret_cast<Lanes>(__builtin_shuffle(reinterpret_cast<CodePlaces>(values), places));
  }
#endif
  const __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const auto bytes = reinterpret_cast<LongBits>(_mm512_maskz_cvtepu8_epi64(kAllLong, some));
  return reinterpret_cast<Lanes>(__builtin_shuffle(values, reinterpret_cast<LaneBits>(bytes >> 4U | bytes << 32U)));
}

/// One tile: `Rows` rows of a by `Columns` rows of codes.
template <int Rows, int Columns, typename T>
void coded_tile(const CodedDots<T>& p, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t kSteps = CodedDots<T>::kBlock / kStep<T>;
  const std::int64_t blocks = p.depth / CodedDots<T>::kBlock;
  const T* const a = p.a + row * p.a_row;
  const std::uint8_t* const codes = p.codes + column * p.depth / 2;
  const float* const scales = p.scales + column * blocks;
  Lanes sums[Rows][Columns] = {};
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * CodedDots<T>::kBlock;
#pragma GCC unroll 8
    for (int j = 0; j < Columns; ++j) {
      const LaneBits values = values_of_block<T>(p.values, scales[j * blocks + block]);
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < kSteps; ++s) {
        const std::int64_t k = first + s * kStep<T>;
        const Lanes y = look_up<T>(values, codes + (j * p.depth + k) / 2);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          sums[i][j] = add_products<T>(sums[i][j], load_step(a + i * p.a_row + k), y);
        }
      }
    }
  }
  float added[Rows * Columns];
  add_up_each<Rows * Columns>(&sums[0][0], added);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    std::memcpy(p.c + (row + i) * p.c_row + column, added + i * Columns, Columns * sizeof(float));
  }
}

template <int Rows, typename T>
void coded_rows(const CodedDots<T>& p, std::int64_t row) {
  constexpr int kWide = Rows == 1 ? kCodedFewRowsColumns : kCodedColumns;
  std::int64_t j = 0;
  for (; j + kWide <= p.columns; j += kWide) coded_tile<Rows, kWide>(p, row, j);
  for (; j < p.columns; ++j) coded_tile<Rows, 1>(p, row, j);
}

template <int Rows, typename T>
void coded_rest(const CodedDots<T>& p, std::int64_t row) {
  if constexpr (Rows > 0) {
    if (p.rows - row == Rows) return coded_rows<Rows>(p, row);
    coded_rest<Rows - 1>(p, row);
  }
}

template <typename T>
void coded_dots(const CodedDots<T>& p) {
  std::int64_t row = 0;
  for (; row + kCodedRows <= p.rows; row += kCodedRows) coded_rows<kCodedRows>(p, row);
  coded_rest<kCodedRows - 1>(p, row);
}

template <typename T>
constexpr auto kCodedDots = &coded_dots<T>;

#else

template <typename T>
constexpr void (*kCodedDots)(const CodedDots<T>&) = nullptr;

#endif

}  // namespace
}  // namespace ROUX_LEVEL
}  // namespace components::kernels
