#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace components::metric {

/// A sum of doubles without rounding: its value depends on what was added, not on the order or on how it was spread
/// over processes. It holds a fixed-point number as long as the range of doubles.
class ExactSum {
 public:
  /// Limbs, and the counts of NaN, inf and -inf.
  static constexpr std::size_t kNumbers = 70 + 3;

  void add(double value);
  /// Adds a * b, which may have twice the digits of a double. Finite numbers, whose product is no subnormal one.
  void add_product(double a, double b);
  void add(const ExactSum& other);

  double value() const;
  /// The value as two doubles, of which the second has what the first has no digits for.
  std::array<double, 2> parts() const;

  /// kNumbers numbers that add up over sums: whole ones, exact as doubles for 2^20 processes.
  void write(std::vector<double>& numbers) const;
  /// Takes kNumbers off the front of what write() gave.
  static ExactSum read(std::span<const double>& numbers);

 private:
  static constexpr std::size_t kLimbs = 70;

  void carry();
  double leading() const;

  std::array<std::int64_t, kLimbs>
      limbs_{};            ///< limb i counts 2^(32 i - 1088); carry() leaves [0, 2^32), a sign on top
  std::int64_t adds_ = 0;  ///< since the last carry()
  std::int64_t nan_ = 0, plus_ = 0, minus_ = 0;
};

/// sum_ab - sum_a sum_b / count, times count, without cancellation: of `count` pairs (a, b), their covariance times the
/// square of `count`.
double centred(double count, const ExactSum& sum_ab, const ExactSum& sum_a, const ExactSum& sum_b);

}  // namespace components::metric
