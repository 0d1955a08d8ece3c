#pragma once

#include <cstddef>
#include <ctime>

namespace components::jinja {

/// What one rendering may cost, by default about a second. A message about a limit names it.
struct RenderLimits {
  std::size_t steps = 20'000'000;          ///< expressions, passes of loops, elements that a filter looks at
  std::size_t output_bytes = 64UL << 20U;  ///< of the rendered text
  std::size_t made_bytes = 64UL << 20U;    ///< of all texts and lists that are made on the way, and
  std::size_t made_times_input = 256;      ///< this many times the bytes of the variables
  std::size_t depth = 500;                 ///< of nested calls, blocks, expressions and values
};

struct RenderOptions {
  std::tm now = {};  ///< for `strftime_now`
  RenderLimits limits = {};
};

}  // namespace components::jinja
