#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace runner::sweep {

/// Variants than which no other one is better: by one objective the best, the first of several; by several their Pareto
/// front. It is kept up with what is put there, so that one variant more costs little.
class Front {
 public:
  /// What a variant came to, by objective, the smaller the better; no values: it takes no part, or no longer.
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
