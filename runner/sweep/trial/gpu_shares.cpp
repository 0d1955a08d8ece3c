#include "runner/sweep/trial/gpu_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runner/core/text/text.h"

namespace runner::sweep {

GpuShares::GpuShares(std::vector<std::string> gpus, int each)
    : gpus_(std::move(gpus)), each_(static_cast<std::size_t>(std::max(1, each))), users_(gpus_.size()) {}

std::string GpuShares::take(std::int64_t trial) {
  if (gpus_.size() < each_) return "";
  std::vector<std::size_t> order(gpus_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) { return users_[a] < users_[b]; });
  order.resize(each_);
  std::sort(order.begin(), order.end());
  for (const std::size_t gpu : order) ++users_[gpu];
  std::vector<std::string> names;
  for (const std::size_t gpu : order) names.push_back(gpus_[gpu]);
  taken_[trial] = std::move(order);
  return core::joined(names, ",");
}

void GpuShares::give_back(std::int64_t trial) {
  const auto found = taken_.find(trial);
  if (found == taken_.end()) return;
  for (const std::size_t gpu : found->second) --users_[gpu];
  taken_.erase(found);
}

}  // namespace runner::sweep
