#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/data.h"
#include "components/data/mix/selection.h"
#include "components/data/mix/stream_mix.h"
#include "components/data/mix/turns.h"
#include "components/data/text_utils.h"
#include "generated/data/concat.h"

namespace components::data::concat {
namespace {

using Sets = std::vector<std::shared_ptr<const Dataset>>;

constexpr std::int64_t kMixedMax = std::int64_t{1} << 30;  ///< samples; each takes 8 bytes

/// Samples of the sets, numbered over all of them, so that every beginning of the list has their shares as closely as
/// whole samples can. Nothing where there would be too many.
std::optional<std::vector<std::int64_t>> mixed(const std::vector<std::int64_t>& sizes,
                                               const std::vector<double>& weights, bool until_all) {
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  // Where each set would end if a sample could be cut: known before a list is filled that cannot be held.
  std::vector<double> ends;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ends.push_back(static_cast<double>(sizes[i]) * whole / weights[i]);
  }
  const double end =
      until_all ? *std::max_element(ends.begin(), ends.end()) : *std::min_element(ends.begin(), ends.end());
  if (end > static_cast<double>(kMixedMax)) return std::nullopt;
  std::vector<std::int64_t> begins, taken(sizes.size(), 0);
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) begins.push_back(std::exchange(begin, begin + size));
  std::vector<std::int64_t> chosen;
  std::size_t left = sizes.size();  // sets that were not taken whole
  while (left > 0) {
    const std::size_t next = next_turn(weights, taken);
    if (!until_all && taken[next] == sizes[next]) break;
    if (static_cast<std::int64_t>(chosen.size()) == kMixedMax) return std::nullopt;
    chosen.push_back(begins[next] + taken[next] % sizes[next]);
    if (++taken[next] == sizes[next]) --left;
  }
  return chosen;
}

/// The sets of the recipe; fewer when errors were reported.
Sets built(const Config& config, const Inputs& inputs) {
  Sets sets;
  for (std::size_t i = 0; i < config.sets.size(); ++i) {
    // Other sets say for themselves what they hold.
    const runner::core::Node* type = config.sets[i].find("type");
    const bool is_table = type != nullptr && type->is_string() && type->as_string() == "csv_table";
    const Dataset* const first = is_table && !sets.empty() ? sets.front().get() : nullptr;
    const Inputs own{inputs.name + ".sets[" + std::to_string(i) + "]",
                     config.sets[i],
                     inputs.diagnostics,
                     inputs.header_only,
                     inputs.train != nullptr ? inputs.train : first,
                     inputs.seed,
                     inputs.new_rows,
                     inputs.labels,
                     inputs.decoder,
                     inputs.model_classes,
                     inputs.keep,
                     inputs.tokenizer};
    if (std::shared_ptr<Dataset> set = build(config.sets[i], own)) sets.push_back(std::move(set));
  }
  return sets;
}

/// Whether all sets are streams; nothing, and an error at each of the others, when only some are.
std::optional<bool> are_streams(const Config& config, const Sets& sets, const Inputs& inputs) {
  const auto streamed = std::find_if(sets.begin(), sets.end(), [](const auto& set) { return set->is_stream(); });
  if (streamed == sets.end()) return false;
  bool all = true;
  const auto name = [&inputs](std::size_t i) { return "data." + inputs.name + ".sets[" + std::to_string(i) + "]"; };
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i]->is_stream()) continue;
    all = false;
    inputs.diagnostics.error(config.sets[i].location(),
                             name(i) + " is read into memory, and " +
                                 name(static_cast<std::size_t>(streamed - sets.begin())) + " is a stream",
                             "make all sets jsonl with streaming: true, or remove streaming from all");
  }
  return all ? std::optional(true) : std::nullopt;
}

}  // namespace

std::shared_ptr<Dataset> make(const Config& config, const Inputs& inputs) {
  Sets sets = built(config, inputs);
  if (sets.size() < config.sets.size()) return nullptr;
  if (config.weights && config.weights->size() != config.sets.size()) {
    inputs.diagnostics.error(location_of(inputs.block, "weights"),
                             "data." + inputs.name + " has " + std::to_string(config.sets.size()) + " sets and " +
                                 std::to_string(config.weights->size()) + " weights",
                             "give one weight for each set");
    return nullptr;
  }
  const std::optional<bool> streams = are_streams(config, sets, inputs);
  if (!streams) return nullptr;
  const bool until_all = config.stopping == Stopping::kAll;
  if (*streams)
    return make_stream_mix({std::move(sets), config.weights.value_or(std::vector<double>()), until_all}, inputs);
  SelectionParts parts{std::move(sets)};
  if (config.weights) {
    std::vector<std::int64_t> sizes;
    for (const auto& set : parts.sets) sizes.push_back(set->size());
    parts.chosen = mixed(sizes, *config.weights, until_all);
    if (!parts.chosen || parts.chosen->empty()) {
      inputs.diagnostics.error(location_of(inputs.block, "weights"),
                               "data." + inputs.name + " would have " +
                                   (parts.chosen ? "no sample" : "more than " + with_commas(kMixedMax) + " samples"),
                               "give weights that are closer to the sizes of the sets");
      return nullptr;
    }
  }
  return make_selection(std::move(parts), inputs);
}

}  // namespace components::data::concat
