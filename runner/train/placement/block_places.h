#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "components/model/model.h"
#include "runner/core/diagnostics.h"
#include "runner/resolve/placement/device_map.h"

namespace runner::resolve {
struct Recipe;
}

namespace runner::train {

/// Where the weights of a model's blocks are, as `placement` says. A block whose weights are in the memory of the CPU,
/// or on the disk, computes on the main device, where they come for that.
struct BlockPlaces {
  std::vector<resolve::placement::Device> of_block;
  resolve::placement::DeviceMap map;  ///< the same by names of blocks, those of one device joined where they can be
  c10::Device main = c10::Device(c10::kCPU);  ///< the first accelerator of the map, or else the CPU
  std::set<std::string> travelling = {};      ///< parameters that are elsewhere when their block does not compute
  std::int64_t travelling_bytes = 0;          ///< of all weights that are elsewhere
  std::int64_t room_bytes = 0;                ///< that they take where they compute, for two blocks

  bool travels(std::size_t block) const;
  c10::Device device_of(std::size_t block) const;
  bool any_travels() const { return travelling_bytes > 0; }
  /// `0: wte to h.7; disk: h.8 to head; 1,024 bytes come for a pass, and go`.
  std::string text() const;
};

struct PlacesInputs {
  const resolve::Recipe& recipe;
  const components::model::Model& on_meta;  ///< with what is frozen, and what is kept in fewer bits
  const std::set<std::string>& in_bf16;     ///< parameters that are in bfloat16
  c10::Device device;                       ///< the recipe's
  bool for_training = true;
  bool for_plan = false;  ///< perhaps for another machine: devices need not be here
};

/// Nothing without `placement`, or with an error: a name that is no block's or of a part of one, a block without a
/// device, a device that this machine lacks, a trained parameter whose block would be elsewhere.
std::optional<BlockPlaces> block_places(const PlacesInputs& inputs, core::Diagnostics& diagnostics);

}  // namespace runner::train
