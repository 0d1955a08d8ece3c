#include "components/sampler/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace components::sampler {
namespace {

bool is_pruned(const Tried& one) { return one.state == Tried::State::kPruned; }

}  // namespace

bool is_judged(const Tried& one) {
  if (one.state != Tried::State::kComplete && !is_pruned(one)) return false;
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

std::vector<std::size_t> fronts_of(const std::vector<std::vector<double>>& values) {
  const std::size_t count = values.size();
  std::vector<std::size_t> fronts(count), above(count), current, next;
  std::vector<std::vector<std::size_t>> below(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < count; ++k) {
      if (!dominates(values[i], values[k])) continue;
      below[i].push_back(k);
      ++above[k];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (above[i] == 0) current.push_back(i);
  }
  for (std::size_t front = 0; !current.empty(); ++front, current.swap(next)) {
    next.clear();
    for (const std::size_t i : current) {
      fronts[i] = front;
      for (const std::size_t k : below[i]) {
        if (--above[k] == 0) next.push_back(k);
      }
    }
  }
  return fronts;
}

std::vector<double> room_of(const std::vector<std::vector<double>>& values, const std::vector<std::size_t>& fronts) {
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

std::vector<std::size_t> ranked(const std::vector<Tried>& tried) {
  std::vector<std::size_t> order;
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (!is_judged(tried[i])) continue;
    order.push_back(i);
    values.push_back(tried[i].values);
  }
  std::vector<double> front(tried.size()), crowd(tried.size());  // of one objective: its value
  const bool several = !values.empty() && values.front().size() > 1;
  const std::vector<std::size_t> fronts = several ? fronts_of(values) : std::vector<std::size_t>();
  const std::vector<double> room = several ? room_of(values, fronts) : std::vector<double>();
  for (std::size_t i = 0; i < order.size(); ++i) {
    front[order[i]] = several ? static_cast<double>(fronts[i]) : values[i].front();
    crowd[order[i]] = several ? -room[i] : 0;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool pruned_a = is_pruned(tried[a]), pruned_b = is_pruned(tried[b]);
    if (pruned_a != pruned_b) return pruned_b;
    if (pruned_a && tried[a].step != tried[b].step) return tried[a].step > tried[b].step;
    return std::tie(front[a], crowd[a]) < std::tie(front[b], crowd[b]);
  });
  return order;
}

}  // namespace components::sampler
