#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace components::sampler {

/// A variant for samplers: one number per dimension, NaN if the dimension is inactive. A choice is its position from 0;
/// integers and reals are themselves.
using Point = std::vector<double>;

/// One swept parameter.
struct Dimension {
  enum class Kind {
    kChoice,   ///< one of `choices` things without an order
    kInteger,  ///< from `min` to `max`, both included
    kReal,     ///< from `min` to `max`
    kNormal,   ///< around `mu`, without an end
  };
  std::string name;
  Kind kind = Kind::kReal;
  std::int64_t choices = 0;
  double min = 0, max = 0;
  double mu = 0, sigma = 1;
  double step = 0;   ///< whole steps above `min` only (of kNormal: multiples); 0: any number
  bool log = false;  ///< the logarithm is what is spread evenly, or around `mu`

  /// The quantile of `u` (0 <= u < 1).
  double quantile(double u) const;
  /// Number of values; 0: too many to count.
  std::int64_t count() const;
  /// Whether a number is one of its values.
  bool has(double value) const;
  /// Value number `index`, from 0 in ascending order, if there are finitely many.
  double nth(std::int64_t index) const;
};

/// The swept parameters and the constraints on them.
class Space {
 public:
  virtual ~Space() = default;

  virtual const std::vector<Dimension>& dimensions() const = 0;
  /// Whether dimension `index` is active, given those before it.
  virtual bool is_active(const Point& point, std::size_t index) const = 0;
  /// Whether it is always active.
  virtual bool is_always_active(std::size_t index) const = 0;
  /// Whether a complete point satisfies the constraints.
  virtual bool allows(const Point& point) const = 0;
  /// The point that sets these values (path -> value). Failure says which of them the space does not have.
  virtual runner::core::Result<Point> locate(const runner::core::Node& values) const = 0;
};

/// The value with a probability of `u` (0 < u < 1) below it in the standard normal distribution.
///
/// Source  Acklam's rational approximation, made exact to the last digits by one step of Halley's method.
double inverse_normal(double u);

}  // namespace components::sampler
