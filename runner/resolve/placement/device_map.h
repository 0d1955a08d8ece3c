#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runner/resolve/placement/module_tree.h"

namespace runner::resolve::placement {

/// An accelerator by its number, the CPU's memory, or the disk; in the order in which they are filled.
struct Device {
  enum class Kind { kAccelerator, kCpu, kDisk };
  Kind kind = Kind::kCpu;
  int index = 0;  ///< of an accelerator

  static Device accelerator(int index) { return {Kind::kAccelerator, index}; }
  static Device cpu() { return {Kind::kCpu, 0}; }
  static Device disk() { return {Kind::kDisk, 0}; }
  bool is_accelerator() const { return kind == Kind::kAccelerator; }
  bool operator==(const Device&) const = default;
  bool operator<(const Device& other) const { return std::tie(kind, index) < std::tie(other.kind, other.index); }
};

/// `0`, `cpu`, `disk`.
std::string to_text(const Device& device);
/// The same back, and `cuda:0`; nothing for another word.
std::optional<Device> device_of_text(const std::string& text);

/// Bytes by device, in any order.
using DeviceBytes = std::vector<std::pair<Device, std::int64_t>>;
/// Where modules and tensors go, by their full names; "" is the whole model. In order.
using DeviceMap = std::vector<std::pair<std::string, Device>>;

struct MapOptions {
  std::set<std::string> whole;                ///< classes of modules that are never split
  std::optional<std::int64_t> element_bytes;  ///< see ModuleBytes
  /// Where nothing fits a device, it gets the first module that does, before those that come earlier.
  bool falls_back = false;
};

/// Fills the devices one after the other with the modules in their order, and the disk with what is left. The first
/// accelerator and the CPU keep room for the largest layer, which comes there when it is needed elsewhere. Modules that
/// share a parameter stay together.
///
/// Source  accelerate.infer_auto_device_map, 1.15.0
DeviceMap infer_device_map(const ModuleTree& tree, const DeviceBytes& max_memory, const MapOptions& options);

/// Less memory for all accelerators but the last, so that each gets as many bytes. `low_zero`: accelerator 0 gets only
/// what the others cannot hold.
///
/// Source  accelerate.utils.get_balanced_memory, 1.15.0
DeviceBytes balanced_memory(const ModuleTree& tree, const DeviceBytes& max_memory, const MapOptions& options,
                            bool low_zero);

struct LargestLayer {
  std::int64_t bytes = 0;
  std::vector<std::string> names;  ///< all that are as large
};
/// Of modules that are not split, and of those without any in them.
LargestLayer largest_layer(const ModuleTree& tree, const ModuleBytes& bytes, const std::set<std::string>& whole);

/// Full names of tensors that a map says nothing of, in the order of the tree.
std::vector<std::string> uncovered_tensors(const ModuleTree& tree, const DeviceMap& map);

}  // namespace runner::resolve::placement
