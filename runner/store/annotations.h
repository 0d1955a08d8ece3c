#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace runner::store {

/// What people said about a run.
struct Annotations {
  std::string label;  ///< the name given later
  std::vector<std::string> tags;
  std::vector<std::pair<std::int64_t, std::string>> notes;  ///< time in ms, text
};

/// Empty where there are none, or where they cannot be read: the run itself is what counts.
Annotations read_annotations(const std::string& run_dir);

}  // namespace runner::store
