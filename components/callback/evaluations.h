#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "components/callback/callback.h"

namespace components::callback {

/// Which evaluations a callback looks at, and of which data sets: what callbacks that look at judged samples share.
///
/// Each `every`-th one; from the 64th look on every second of these, from the 128th every fourth, and so on, so that
/// the longest run keeps a few hundred.
class Evaluations {
 public:
  Evaluations(std::int64_t every, std::vector<std::string> data_sets)
      : every_(every), data_sets_(std::move(data_sets)) {}

  /// Whether the evaluation that is going on is looked at; `data_set`: that part of it.
  bool looks() const;
  bool looks_at(const std::string& data_set) const;
  void end() { ++done_; }

  void save_state(runner::core::StateWriter& writer) const;
  void load_state(const runner::core::StateReader& reader);

 private:
  std::int64_t every_;
  std::vector<std::string> data_sets_;  ///< empty: all
  std::int64_t done_ = 0;
};

/// Refuses, at `data` of the callback's block, sets that are not evaluated; and a recipe that evaluates nothing.
/// `name`: the callback's. False when there was something to refuse.
bool are_evaluated(const std::vector<std::string>& data_sets, const std::string& name, const Inputs& inputs);

}  // namespace components::callback
