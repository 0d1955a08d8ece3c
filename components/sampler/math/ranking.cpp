#include "components/sampler/math/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace components::sampler {
namespace {

bool is_pruned(const Observation& one) { return one.state == Observation::State::kPruned; }

}  // namespace

bool has_result(const Observation& one) {
  if (one.state != Observation::State::kComplete && !is_pruned(one)) return false;
  return !one.values.empty() &&
         std::none_of(one.values.begin(), one.values.end(), [](double v) { return std::isnan(v); });
}

bool dominates(const std::vector<double>& one, const std::vector<double>& other) {
  bool better = false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (one[i] > other[i]) return false;
    better = better || one[i] < other[i];
  }
  return better;
}

std::vector<std::size_t> non_dominated_fronts(const std::vector<std::vector<double>>& values) {
  // In lexicographic order no point is dominated by a later one. A point that no member of a front dominates is not
  // dominated by later fronts either: so a binary search finds its front.
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&values](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<std::vector<std::size_t>> members;
  std::vector<std::size_t> fronts(values.size());
  for (const std::size_t i : order) {
    const auto keeps_out = [&](const std::vector<std::size_t>& front) {
      return std::any_of(front.rbegin(), front.rend(),
                         [&](std::size_t other) { return dominates(values[other], values[i]); });
    };
    const auto front = std::partition_point(members.begin(), members.end(), keeps_out);
    fronts[i] = static_cast<std::size_t>(front - members.begin());
    if (front == members.end()) members.emplace_back();
    members[fronts[i]].push_back(i);
  }
  return fronts;
}

std::vector<double> crowding_distances(const std::vector<std::vector<double>>& values,
                                       const std::vector<std::size_t>& fronts) {
  std::vector<double> room(values.size());
  if (values.empty()) return room;
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t objective = 0; objective < values.front().size(); ++objective) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(fronts[a], values[a][objective]) < std::tie(fronts[b], values[b][objective]);
    });
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && fronts[order[end]] == fronts[order[begin]]) ++end;
      const double least = values[order[begin]][objective], most = values[order[end - 1]][objective];
      for (std::size_t i = begin; i < end; ++i) {
        const bool inner = i > begin && i + 1 < end;
        if (!inner) {
          room[order[i]] = std::numeric_limits<double>::infinity();
        } else if (most > least) {
          room[order[i]] += (values[order[i + 1]][objective] - values[order[i - 1]][objective]) / (most - least);
        }
      }
    }
  }
  return room;
}

std::vector<std::size_t> ranked(const std::vector<Observation>& observations) {
  std::vector<std::size_t> order;
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (!has_result(observations[i])) continue;
    order.push_back(i);
    values.push_back(observations[i].values);
  }
  std::vector<double> front(observations.size()), crowd(observations.size());  // of one objective: its value
  const bool several = !values.empty() && values.front().size() > 1;
  const std::vector<std::size_t> fronts = several ? non_dominated_fronts(values) : std::vector<std::size_t>();
  const std::vector<double> room = several ? crowding_distances(values, fronts) : std::vector<double>();
  for (std::size_t i = 0; i < order.size(); ++i) {
    front[order[i]] = several ? static_cast<double>(fronts[i]) : values[i].front();
    crowd[order[i]] = several ? -room[i] : 0;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool pruned_a = is_pruned(observations[a]), pruned_b = is_pruned(observations[b]);
    if (pruned_a != pruned_b) return pruned_b;
    if (pruned_a && observations[a].step != observations[b].step) return observations[a].step > observations[b].step;
    return std::tie(front[a], crowd[a]) < std::tie(front[b], crowd[b]);
  });
  return order;
}

}  // namespace components::sampler
