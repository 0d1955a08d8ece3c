#pragma once

#include <string>
#include <vector>

#include "runner/store/run_reader.h"
#include "runner/terminal/text.h"

namespace runner::review {

/// One character per bar, relative to the largest count: eighths of a block, or marks in plain ASCII.
std::string bars_text(const std::vector<double>& counts, const terminal::Terminal& terminal);

/// The histograms of the last step that has any, a row each; "" for none.
std::string histograms_text(const std::vector<store::EventRow>& events, const terminal::Terminal& terminal);

}  // namespace runner::review
