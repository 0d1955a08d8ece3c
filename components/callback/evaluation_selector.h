#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "components/callback/callback.h"

namespace components::callback {

/// Selects the evaluations and data sets for a callback; shared by callbacks that inspect evaluated samples.
///
/// Each `every`-th one; after 64 of them every second one, after 128 every fourth, and so on, so that the longest run
/// keeps a few hundred.
class EvaluationSelector {
 public:
  EvaluationSelector(std::int64_t every, std::vector<std::string> data_sets)
      : every_(every), data_sets_(std::move(data_sets)) {}

  /// Whether the evaluation in progress is selected; `data_set`: that part of it.
  bool is_selected() const;
  bool selects(const std::string& data_set) const;
  void end() { ++done_; }

  void save_state(runner::core::StateWriter& writer) const;
  void load_state(const runner::core::StateReader& reader);

 private:
  std::int64_t every_;
  std::vector<std::string> data_sets_;  ///< empty: all
  std::int64_t done_ = 0;
};

/// Refuses, at `data` of the callback's block, sets that are not evaluated; and a recipe without an evaluation. `name`:
/// the callback's. False when refused.
bool check_data_sets(const std::vector<std::string>& data_sets, const std::string& name, const Inputs& inputs);

/// Refuses, at the callback's block, a model without kOutput and data without kTarget.
void check_output_and_target(const model::Model& model, const data::Dataset& train_data,
                             const runner::core::Node& block, runner::core::Diagnostics& diagnostics);

}  // namespace components::callback
