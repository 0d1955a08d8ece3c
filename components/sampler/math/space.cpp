#include "components/sampler/math/space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "runner/core/error.h"

namespace components::sampler {
namespace {

constexpr std::int64_t kCountMax = 1'000'000'000;
constexpr double kSlack = 1e-9;  // 0.3 / 0.1 is 2.9999999999999996, and means three steps

/// `min + steps * step` in the digits that a person would write: 0.3, not 0.30000000000000004.
double stepped(double min, double steps, double step) {
  const double value = min + steps * step;
  if (value == 0 || (min == std::floor(min) && step == std::floor(step))) return value;  // no digits to lose
  const double scale = std::pow(10.0, 14 - std::ceil(std::log10(std::abs(value))));
  return std::isfinite(scale) && scale != 0 ? std::round(value * scale) / scale : value;
}

double floor_of_steps(const Dimension& d, double value) { return std::floor((value - d.min) / d.step + kSlack); }

double last_step(const Dimension& d) { return floor_of_steps(d, d.max); }

/// Integers share the line out evenly: each owns the half open interval around it.
double integer_quantile(const Dimension& d, double u) {
  const double low = d.min - 0.5, high = d.max + 0.5;
  if (!d.log) return std::clamp(std::round(low + u * (high - low)), d.min, d.max);
  return std::clamp(std::round(std::exp(std::log(low) + u * (std::log(high) - std::log(low)))), d.min, d.max);
}

/// Each step as likely, also where there are more than count() counts out.
double step_quantile(const Dimension& d, double u) {
  const double last = last_step(d);
  return stepped(d.min, std::min(std::floor(u * (last + 1)), last), d.step);
}

}  // namespace

double Dimension::quantile(double u) const {
  switch (kind) {
    case Kind::kChoice: return std::min(std::floor(u * static_cast<double>(choices)), static_cast<double>(choices - 1));
    case Kind::kInteger: return step == 0 ? integer_quantile(*this, u) : step_quantile(*this, u);
    case Kind::kNormal: {
      const double drawn = mu + sigma * inverse_normal(std::max(u, std::numeric_limits<double>::epsilon()));
      const double value = log ? std::exp(drawn) : drawn;
      const double steps = std::round(value / step);
      return step == 0 ? value : stepped(0, log ? std::max(steps, 1.0) : steps, step);
    }
    case Kind::kReal: break;
  }
  if (!log && step == 0) return std::min(min + u * (max - min), max);
  if (!log) return step_quantile(*this, u);
  const double value = std::clamp(std::exp(std::log(min) + u * (std::log(max) - std::log(min))), min, max);
  return step == 0 ? value : stepped(min, std::min(std::round((value - min) / step), last_step(*this)), step);
}

std::int64_t Dimension::count() const {
  switch (kind) {
    case Kind::kChoice: return choices;
    case Kind::kNormal: return 0;
    case Kind::kInteger: break;
    case Kind::kReal:
      if (step == 0) return 0;
  }
  const double steps = step == 0 ? max - min : last_step(*this);
  return steps < static_cast<double>(kCountMax) ? static_cast<std::int64_t>(steps) + 1 : 0;
}

bool Dimension::has(double value) const {
  if (!std::isfinite(value)) return false;
  const auto is_step = [this](double from_zero) {
    const double steps = from_zero / step;
    return std::abs(steps - std::round(steps)) <= kSlack * std::max(1.0, std::abs(steps));
  };
  switch (kind) {
    case Kind::kChoice: return value >= 0 && value < static_cast<double>(choices) && value == std::floor(value);
    case Kind::kNormal: return (!log || value > 0) && (step == 0 || is_step(value));
    case Kind::kInteger:
    case Kind::kReal: break;
  }
  if (value < min || value > max || (kind == Kind::kInteger && value != std::floor(value))) return false;
  return step == 0 || is_step(value - min);
}

double Dimension::nth(std::int64_t index) const {
  const auto i = static_cast<double>(index);
  if (kind == Kind::kChoice) return i;
  return step == 0 ? min + i : stepped(min, i, step);
}

double inverse_normal(double u) {
  RUNNER_ASSERT(u > 0 && u < 1, "a share of the whole");
  static constexpr std::array a = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                   1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr std::array b = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                                   6.680131188771972e+01, -1.328068155288572e+01};
  static constexpr std::array c = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                   -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr std::array d = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                   3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  const auto tail = [](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  double x = 0;
  if (u < kTail) {
    x = tail(std::sqrt(-2 * std::log(u)));
  } else if (u > 1 - kTail) {
    x = -tail(std::sqrt(-2 * std::log1p(-u)));
  } else {
    const double q = u - 0.5, r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - u;
  const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

}  // namespace components::sampler
