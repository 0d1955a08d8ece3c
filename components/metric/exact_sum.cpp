#include "components/metric/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace components::metric {
namespace {

constexpr std::int64_t kBase = std::int64_t{1} << 32;
constexpr int kLowest = 1088;  // the lowest limb counts 2^-1088; the smallest double is 2^-1074
constexpr std::int64_t kAddsMost = std::int64_t{1} << 30;

}  // namespace

void ExactSum::add(double value) {
  if (!std::isfinite(value)) {
    ++(std::isnan(value) ? nan_ : value > 0 ? plus_ : minus_);
    return;
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7FF);
  std::uint64_t digits = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent > 0) digits |= std::uint64_t{1} << 52;
  // The value is digits * 2^(max(exponent, 1) - 1075).
  const int shift = std::max(exponent, 1) - 1075 + kLowest;
  const auto limb = static_cast<std::size_t>(shift / 32);
  const int within = shift % 32;
  const std::uint64_t low = (digits & 0xFFFFFFFF) << within, high = (digits >> 32) << within;
  const std::uint64_t middle = (low >> 32) + (high & 0xFFFFFFFF);
  const std::int64_t sign = bits >> 63 != 0 ? -1 : 1;
  limbs_[limb] += sign * static_cast<std::int64_t>(low & 0xFFFFFFFF);
  limbs_[limb + 1] += sign * static_cast<std::int64_t>(middle);
  limbs_[limb + 2] += sign * static_cast<std::int64_t>(high >> 32);
  if (++adds_ >= kAddsMost / 2) carry();
}

void ExactSum::add_product(double a, double b) {
  const double product = a * b;
  add(product);
  if (std::isfinite(product)) add(std::fma(a, b, -product));
}

void ExactSum::add(const ExactSum& other) {
  ExactSum carried = other;
  carried.carry();
  for (std::size_t i = 0; i < kLimbs; ++i) limbs_[i] += carried.limbs_[i];
  if (++adds_ >= kAddsMost / 2) carry();
  nan_ += other.nan_;
  plus_ += other.plus_;
  minus_ += other.minus_;
}

void ExactSum::carry() {
  for (std::size_t i = 0; i + 1 < kLimbs; ++i) {
    const std::int64_t up = limbs_[i] >> 32;  // rounds down
    limbs_[i] -= up * kBase;
    limbs_[i + 1] += up;
  }
  adds_ = 0;
}

double ExactSum::leading() const {
  if (nan_ > 0 || (plus_ > 0 && minus_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (plus_ > 0 || minus_ > 0) return plus_ > 0 ? HUGE_VAL : -HUGE_VAL;
  ExactSum magnitude = *this;
  magnitude.carry();
  const bool negative = magnitude.limbs_.back() < 0;
  if (negative) {
    for (std::int64_t& limb : magnitude.limbs_) limb = -limb;
    magnitude.carry();
  }
  std::size_t top = kLimbs;
  while (top > 0 && magnitude.limbs_[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  // From the lowest of the limbs that count, so that what is rounded off is rounded once more at most.
  double value = 0.0;
  for (std::size_t i = top >= 4 ? top - 4 : 0; i < top; ++i) {
    value += std::ldexp(static_cast<double>(magnitude.limbs_[i]), static_cast<int>(32 * i) - kLowest);
  }
  return negative ? -value : value;
}

double ExactSum::value() const { return leading(); }

std::array<double, 2> ExactSum::parts() const {
  const double first = leading();
  if (!std::isfinite(first)) return {first, 0.0};
  ExactSum rest = *this;
  rest.add(-first);
  return {first, rest.leading()};
}

void ExactSum::write(std::vector<double>& numbers) const {
  ExactSum carried = *this;
  carried.carry();
  for (const std::int64_t limb : carried.limbs_) numbers.push_back(static_cast<double>(limb));
  for (const std::int64_t count : {nan_, plus_, minus_}) numbers.push_back(static_cast<double>(count));
}

ExactSum ExactSum::read(std::span<const double>& numbers) {
  ExactSum sum;
  for (std::size_t i = 0; i < kLimbs; ++i) sum.limbs_[i] = static_cast<std::int64_t>(numbers[i]);
  sum.nan_ = static_cast<std::int64_t>(numbers[kLimbs]);
  sum.plus_ = static_cast<std::int64_t>(numbers[kLimbs + 1]);
  sum.minus_ = static_cast<std::int64_t>(numbers[kLimbs + 2]);
  sum.carry();
  numbers = numbers.subspan(kNumbers);
  return sum;
}

double centred(double count, const ExactSum& sum_ab, const ExactSum& sum_a, const ExactSum& sum_b) {
  const auto [ab, ab_rest] = sum_ab.parts();
  const auto [a, a_rest] = sum_a.parts();
  const auto [b, b_rest] = sum_b.parts();
  ExactSum difference;
  difference.add_product(count, ab);
  difference.add_product(count, ab_rest);
  difference.add_product(-a, b);
  difference.add_product(-a, b_rest);
  difference.add_product(-a_rest, b);
  difference.add_product(-a_rest, b_rest);
  return difference.value();
}

}  // namespace components::metric
