#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "components/data/data.h"
#include "components/data/label/sample_classes.h"
#include "components/data/mix/selection.h"
#include "components/data/text_utils.h"
#include "generated/data/fold.h"

namespace components::data::fold {
namespace {

/// The fold of each sample: dealt out in a shuffled order, of class after class.
std::vector<std::int64_t> folds_of(const Dataset& set, const Config& config) {
  const std::vector<std::int64_t> classes = config.stratified ? classes_of(set) : std::vector<std::int64_t>();
  const at::Tensor order = at::randperm(
      set.size(), at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(config.seed)), at::kLong);
  std::vector<std::int64_t> shuffled(order.const_data_ptr<std::int64_t>(),
                                     order.const_data_ptr<std::int64_t>() + order.numel());
  if (!classes.empty()) {
    std::stable_sort(shuffled.begin(), shuffled.end(), [&classes](std::int64_t one, std::int64_t other) {
      return classes[static_cast<std::size_t>(one)] < classes[static_cast<std::size_t>(other)];
    });
  }
  std::vector<std::int64_t> folds(shuffled.size());
  for (std::size_t i = 0; i < shuffled.size(); ++i)
    folds[static_cast<std::size_t>(shuffled[i])] = static_cast<std::int64_t>(i) % config.folds;
  return folds;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const Inputs own{inputs.name, config.of,       inputs.diagnostics, inputs.header_only, inputs.train,
                   inputs.seed, inputs.new_rows, inputs.labels,      inputs.decoder,     inputs.model_classes,
                   inputs.keep, inputs.tokenizer};
  std::shared_ptr<Dataset> set = build(config.of, own);
  if (set == nullptr || !is_counted(*set, own)) return nullptr;
  if (set->size() < config.folds) {
    inputs.diagnostics.error(inputs.block.location(),
                             "data." + inputs.name + " is to be cut into " + with_commas(config.folds) +
                                 " folds, and has " + counted_large(set->size(), "sample", "samples"),
                             "use fewer folds, or more data");
    return nullptr;
  }
  const std::vector<std::int64_t> folds = folds_of(*set, config);
  const bool is_held_out = config.held_out.value_or(inputs.name != "train");
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < folds.size(); ++i) {
    if ((folds[i] == config.fold) == is_held_out) chosen.push_back(static_cast<std::int64_t>(i));
  }
  return make_selection({{std::move(set)}, std::move(chosen)}, inputs);
}

}  // namespace components::data::fold
