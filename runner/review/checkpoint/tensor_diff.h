#pragma once

#include <string>

#include "runner/artifact/tensor_compare.h"
#include "runner/terminal/text.h"

namespace runner::review {

struct DiffOptions {
  std::string a, b;  ///< the compared checkpoints, for display
  std::size_t rows_max = 40;
};

/// A table of tensors that differ, the values that differ, and a summary.
std::string diff_text(const artifact::Comparison& comparison, const DiffOptions& options,
                      const terminal::Terminal& terminal);
std::string diff_json(const artifact::Comparison& comparison, const DiffOptions& options);

}  // namespace runner::review
