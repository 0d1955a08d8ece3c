#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace runner::sweep {

/// The best variants: with one objective the best, the first of equal ones; with several the Pareto front. Updated
/// incrementally, so that another variant costs little.
class ParetoFront {
 public:
  /// The values of a variant, by objective, smaller is better; no values: it does not take part (any longer).
  void put(std::int64_t variant, std::vector<double> values);
  /// By number.
  std::vector<std::int64_t> variants() const;
  /// The best by the first objective, as many as there are.
  std::vector<std::int64_t> best(std::size_t count) const;

 private:
  void add(std::int64_t variant, const std::vector<double>& values);

  std::map<std::int64_t, std::vector<double>> values_;
  std::set<std::pair<double, std::int64_t>> by_first_;
  std::set<std::int64_t> front_;
};

}  // namespace runner::sweep
