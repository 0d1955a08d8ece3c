#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "components/transform/transform.h"

namespace components::transform {

/// How many tokens of a text are cut out, in how many spans.
struct SpanCounts {
  std::int64_t tokens = 0, spans = 0;
};

/// `density`: fraction of the tokens; `mean`: tokens of a span. At least one token is cut out and one stays; of less
/// than two tokens none is.
SpanCounts span_counts(std::int64_t length, double density, double mean);

/// Of each token whether it is cut out. Spans alternate with what stays, which comes first; all such masks are equally
/// likely.
std::vector<bool> span_mask(std::int64_t length, const SpanCounts& counts, const Draw& draw);

/// What a model with an encoder and a decoder reads and writes.
struct CutText {
  std::vector<std::int64_t> source;  ///< what stays, with a sentinel in place of each span
  std::vector<std::int64_t> target;  ///< each sentinel with its span behind it
};

/// Both end with `end`. The mask has at most as many spans as there are sentinels.
CutText cut_spans(std::span<const std::int64_t> ids, const std::vector<bool>& mask,
                  std::span<const std::int32_t> sentinels, std::int32_t end);

}  // namespace components::transform
