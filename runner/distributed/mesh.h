#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// An axis of the mesh: how many ranks it has, and what keys and messages call it.
struct MeshAxis {
  std::string name;  ///< `dp_shard`
  int size = 1;
};

/// The ranks as a grid. The last axis counts fastest: with {dp_replicate 2, dp_shard 4} the ranks 4 to 7 are the second
/// replica. Axes come in this order, those of size 1 left out: pp, dp_replicate, dp_shard, cp, tp.
class Mesh {
 public:
  /// Connects the ranks along each axis with more than one; a collective of all. Their sizes multiply to that of
  /// `world`, which outlives this. Messages name a rank by its place from here on, where there are several axes.
  Mesh(ProcessGroup& world, std::vector<MeshAxis> axes);

  /// The ranks that differ from this one in this axis alone; null for an axis of one rank.
  ProcessGroup* along(const std::string& axis) const;
  /// Place of a rank on each axis.
  std::vector<int> place_of(int rank) const;
  /// The same in words: `dp_replicate 1, dp_shard 0`.
  std::string text_of(int rank) const;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // by axis
};

}  // namespace runner::distributed
