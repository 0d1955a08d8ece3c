#pragma once

#include <string>

#include "runner/cli/estimate/estimate.h"

namespace runner::cli {

std::string report_text(const MemoryReport& report, const EstimateFlags& flags);
std::string report_json(const MemoryReport& report, const EstimateFlags& flags);

}  // namespace runner::cli
