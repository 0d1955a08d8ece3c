#include "components/data/label/sample_classes.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "components/tensor/tensors.h"

namespace components::data {
namespace {

constexpr std::int64_t kRead = 256;  ///< samples at a time

void each_target(const Dataset& set, const std::function<void(std::int64_t)>& call) {
  for (std::int64_t begin = 0; begin < set.size(); begin += kRead) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(kRead, set.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    TensorMap batch;
    set.fetch(indices, batch);
    const at::Tensor of = batch.at(kTarget).contiguous();
    const auto* targets = of.const_data_ptr<std::int64_t>();
    std::for_each(targets, targets + of.numel(), call);
  }
}

}  // namespace

bool has_classes(const Dataset& set) {
  const TensorSpec* target = set.signature().find(kTarget);
  return target != nullptr && target->dtype == Dtype::kInt64 && target->shape.size() == 1;
}

std::vector<std::int64_t> classes_of(const Dataset& set) {
  std::vector<std::int64_t> classes;
  if (!has_classes(set)) return classes;
  each_target(set, [&classes](std::int64_t target) { classes.push_back(target); });
  return classes;
}

std::vector<std::int64_t> count_classes(const Dataset& set) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(set.signature().at(kTarget).num_classes));
  each_target(set, [&counts](std::int64_t target) {
    if (target >= 0 && target < std::ssize(counts)) ++counts[static_cast<std::size_t>(target)];
  });
  return counts;
}

}  // namespace components::data
