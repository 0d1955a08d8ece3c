#include "runner/sweep/analysis/regression_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace runner::sweep {
namespace {

constexpr double kVarianceMin = std::numeric_limits<double>::epsilon();  // below it targets are the same

using Chosen = std::vector<std::size_t>;

struct Split {
  std::size_t column = 0;
  double threshold = 0;
  double gain = -std::numeric_limits<double>::infinity();
};

class Grower {
 public:
  Grower(const Samples& samples, components::sampler::CounterRng& rng)
      : samples_(samples), draws_(rng), order_(samples.columns.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  void grow(Chosen chosen, TreeLeaf box, int depth_left) {
    const auto count = static_cast<double>(chosen.size());
    double sum = 0, squares = 0;
    for (const std::size_t i : chosen) sum += samples_.targets[i];
    const double mean = sum / count;
    for (const std::size_t i : chosen) squares += (samples_.targets[i] - mean) * (samples_.targets[i] - mean);
    box.value = mean;
    if (chosen.size() < 2 || depth_left == 0 || squares / count <= kVarianceMin) return leaves_.push_back(box), void();
    const Split split = best_split(chosen, mean);
    if (split.gain == -std::numeric_limits<double>::infinity()) return leaves_.push_back(box), void();
    const auto& column = samples_.columns[split.column];
    const auto middle =
        std::partition(chosen.begin(), chosen.end(), [&](std::size_t i) { return column[i] <= split.threshold; });
    TreeLeaf below = box, above = std::move(box);
    below.high[split.column] = split.threshold;
    above.low[split.column] = split.threshold;
    grow(Chosen(chosen.begin(), middle), std::move(below), depth_left - 1);
    grow(Chosen(middle, chosen.end()), std::move(above), depth_left - 1);
  }

  std::vector<TreeLeaf> leaves() && { return std::move(leaves_); }

 private:
  /// Targets are taken from `mean`, so that large ones lose no digits.
  Split best_split(Chosen& chosen, double mean) {
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<std::size_t>(draws_.uniform() * static_cast<double>(i))]);
    Split best;
    for (const std::size_t column : order_) try_column(chosen, column, mean, best);
    return best;
  }

  void try_column(Chosen& chosen, std::size_t index, double mean, Split& best) {
    const auto& column = samples_.columns[index];
    const auto [least, most] =
        std::minmax_element(chosen.begin(), chosen.end(), [&](auto a, auto b) { return column[a] < column[b]; });
    if (column[*least] == column[*most]) return;
    std::sort(chosen.begin(), chosen.end(),
              [&](auto a, auto b) { return std::pair(column[a], a) < std::pair(column[b], b); });
    double below = 0;  // of the targets; those above sum up to as much with the other sign
    for (std::size_t i = 0; i + 1 < chosen.size(); ++i) {
      below += samples_.targets[chosen[i]] - mean;
      const double here = column[chosen[i]], next = column[chosen[i + 1]];
      if (here == next) continue;
      const auto left = static_cast<double>(i + 1), right = static_cast<double>(chosen.size() - i - 1);
      const double gain = below * below / left + below * below / right;
      if (gain <= best.gain) continue;
      const double half = here / 2 + next / 2;
      best = {index, half < next ? half : here, gain};
    }
  }

  const Samples& samples_;
  components::sampler::CounterRng& draws_;
  Chosen order_;
  std::vector<TreeLeaf> leaves_;
};

}  // namespace

std::vector<TreeLeaf> grow_tree(const Samples& samples, std::vector<std::size_t> chosen, const TreeLeaf& root,
                                int depth_max, components::sampler::CounterRng& rng) {
  Grower grower(samples, rng);
  grower.grow(std::move(chosen), root, depth_max);
  return std::move(grower).leaves();
}

}  // namespace runner::sweep
