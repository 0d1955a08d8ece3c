#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/mix/selection.h"
#include "components/data/text_utils.h"
#include "generated/data/subset.h"

namespace components::data::subset {
namespace {

/// Nothing when an error was reported.
std::optional<std::int64_t> count_of(const Config& config, std::int64_t size, const Inputs& inputs) {
  if (config.samples.has_value() == config.fraction.has_value()) {
    inputs.diagnostics.error(
        inputs.block.location(),
        "data." + inputs.name + " needs samples or fraction" + (config.samples ? ", not both" : ""),
        "samples: 1000 takes that many, fraction: 0.1 a tenth");
    return std::nullopt;
  }
  if (config.fraction) {
    return std::max<std::int64_t>(1, std::llround(*config.fraction * static_cast<double>(size)));
  }
  if (*config.samples <= size) return config.samples;
  inputs.diagnostics.error(location_of(inputs.block, "samples"),
                           "data." + inputs.name + " is to have " +
                               counted_large(*config.samples, "sample", "samples") + " of " + with_commas(size),
                           "use samples: " + std::to_string(size) + " or less, or fraction");
  return std::nullopt;
}

/// In the set's order.
std::vector<std::int64_t> drawn(std::int64_t count, std::int64_t size, std::uint64_t seed) {
  const at::Tensor order = at::randperm(size, at::make_generator<at::CPUGeneratorImpl>(seed), at::kLong);
  const auto* const first = order.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> chosen(first, first + count);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  const Inputs own{inputs.name, config.of,       inputs.diagnostics, inputs.header_only, inputs.train,
                   inputs.seed, inputs.new_rows, inputs.labels,      inputs.decoder,     inputs.model_classes,
                   inputs.keep, inputs.tokenizer};
  std::shared_ptr<Dataset> set = build(config.of, own);
  if (set == nullptr || !is_counted(*set, own)) return nullptr;
  const auto count = count_of(config, set->size(), inputs);
  if (!count) return nullptr;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(*count));
  std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
  if (config.random)
    chosen = drawn(*count, set->size(), config.seed ? static_cast<std::uint64_t>(*config.seed) : inputs.seed);
  return make_selection({{std::move(set)}, std::move(chosen)}, inputs);
}

}  // namespace components::data::subset
