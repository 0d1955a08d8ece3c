#pragma once

#include <string>
#include <vector>

#include "runner/core/node.h"

namespace tests {

/// What `explain` shows of how a value came to be.
inline std::vector<std::string> history_of(const runner::core::Node& value) {
  std::vector<std::string> texts;
  for (const runner::core::HistoryStep& step : value.history()) texts.push_back(step.text);
  return texts;
}

}  // namespace tests
