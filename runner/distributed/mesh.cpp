#include "runner/distributed/mesh.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runner/core/error.h"

namespace runner::distributed {

Mesh::Mesh(ProcessGroup& world, std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  int size = 1;
  for (const MeshAxis& axis : axes_) size *= axis.size;
  RUNNER_ASSERT(size == world.size(), "the recipe was checked: the sizes of the mesh multiply to the number of ranks");
  const bool is_grid =
      std::count_if(axes_.begin(), axes_.end(), [](const MeshAxis& axis) { return axis.size > 1; }) > 1;
  if (is_grid) {
    std::vector<std::string> places;
    for (int rank = 0; rank < size; ++rank) places.push_back(text_of(rank));
    world.describe_ranks(places);
  }
  int stride = size;
  for (const MeshAxis& axis : axes_) {
    stride /= axis.size;
    const int first = world.rank() - world.rank() / stride % axis.size * stride;
    std::vector<int> ranks;
    for (int place = 0; place < axis.size; ++place) ranks.push_back(first + place * stride);
    groups_.push_back(axis.size > 1 ? world.part(ranks, axis.name) : nullptr);
  }
}

ProcessGroup* Mesh::along(const std::string& axis) const {
  const auto found =
      std::find_if(axes_.begin(), axes_.end(), [&axis](const MeshAxis& one) { return one.name == axis; });
  return found == axes_.end() ? nullptr : groups_[static_cast<std::size_t>(found - axes_.begin())].get();
}

std::vector<int> Mesh::place_of(int rank) const {
  std::vector<int> place(axes_.size());
  for (std::size_t i = axes_.size(); i > 0; --i) {
    place[i - 1] = rank % axes_[i - 1].size;
    rank /= axes_[i - 1].size;
  }
  return place;
}

std::string Mesh::text_of(int rank) const {
  const std::vector<int> place = place_of(rank);
  std::string text;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    text += (i == 0 ? "" : ", ") + axes_[i].name + " " + std::to_string(place[i]);
  }
  return text;
}

}  // namespace runner::distributed
