#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "components/data/stream.h"

namespace components::data {

/// A place in a mix of streams.
struct MixMark final : Stream::Mark {
  std::int64_t position = 0, pass = 0;
  std::vector<std::int64_t> taken, begun;  ///< of each set: samples in this pass, and its own pass where this one began
  std::vector<std::shared_ptr<const Stream::Mark>> sets;

  std::int64_t sample() const override { return position; }
  runner::core::Node to_node() const override;
  /// Of to_node(). RunError as Stream::mark_of() of one of the sets, and when there were others.
  static MixMark of(const runner::core::Node& node, std::span<const std::unique_ptr<Stream>> streams);
};

}  // namespace components::data
