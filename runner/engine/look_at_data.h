#pragma once

#include <memory>
#include <optional>
#include <string>

#include "components/data/data.h"
#include "runner/core/diagnostics.h"
#include "runner/engine/data_view.h"
#include "runner/train/experiment/experiment.h"

namespace runner::engine {

/// Engine::view_data().
std::optional<DataView> view_data(const resolve::Recipe& recipe, const DataRequest& request,
                                  core::Diagnostics& diagnostics);

/// Engine::data_stats().
std::optional<DataStats> data_stats(const resolve::Recipe& recipe, const DataRequest& request,
                                    core::Diagnostics& diagnostics);

/// The set of a request, with the training set whose vocabulary it has.
struct OpenedSet {
  std::unique_ptr<train::Experiment> experiment;
  const components::data::Dataset* data = nullptr;
  std::string type;  ///< `jsonl`
};

/// Nothing when `diagnostics` got errors, such as that no set has the name.
std::optional<OpenedSet> open_set(const resolve::Recipe& recipe, const DataRequest& request,
                                  core::Diagnostics& diagnostics);

/// Of the records that were encoded so far.
std::vector<FieldFigures> fields_of(const components::data::Dataset& data);

/// Whether the input of a set is a sequence of ids.
bool has_ids(const components::data::Dataset& data);

/// Positions of a sample, without padding.
std::int64_t length_of(const std::vector<components::data::Part>& parts);

/// Positions in front of a sample of that length that only fill its row of a batch.
std::int64_t filled_in_front(const components::data::Dataset& data, std::int64_t width, std::int64_t length);

SamplePart shown_part(const components::data::Part& part, const components::data::Dataset& data);

}  // namespace runner::engine
