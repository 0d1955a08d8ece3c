#include "runner/sweep/study/pareto_front.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "components/sampler/math/ranking.h"

namespace runner::sweep {

using components::sampler::dominates;

void ParetoFront::put(std::int64_t variant, std::vector<double> values) {
  // What is no number is as bad as can be.
  for (double& value : values) value = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  if (const auto before = values_.find(variant); before != values_.end()) {
    if (before->second == values) return;
    by_first_.erase({before->second.front(), variant});
    values_.erase(before);
    if (front_.erase(variant) > 0) {
      front_.clear();  // others may come up that it kept down
      for (const auto& [other, its] : values_) add(other, its);
    }
  }
  if (values.empty()) return;
  by_first_.emplace(values.front(), variant);
  if (values.size() > 1) add(variant, values);
  values_.emplace(variant, std::move(values));
}

/// To the front, unless one there is better.
void ParetoFront::add(std::int64_t variant, const std::vector<double>& values) {
  const auto is_beaten_by = [&](std::int64_t other) { return dominates(values_.at(other), values); };
  if (std::any_of(front_.begin(), front_.end(), is_beaten_by)) return;
  std::erase_if(front_, [&](std::int64_t other) { return dominates(values, values_.at(other)); });
  front_.insert(variant);
}

std::vector<std::int64_t> ParetoFront::variants() const {
  const bool has_one_objective = !values_.empty() && values_.begin()->second.size() == 1;
  return has_one_objective ? best(1) : std::vector<std::int64_t>(front_.begin(), front_.end());
}

std::vector<std::int64_t> ParetoFront::best(std::size_t count) const {
  std::vector<std::int64_t> list;
  for (const auto& [value, variant] : by_first_) {
    if (list.size() == count) break;
    list.push_back(variant);
  }
  return list;
}

}  // namespace runner::sweep
