#include <string>

#include "runner/core/json.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/resolve/placement/device_map.h"
#include "runner/resolve/rules/rules.h"

namespace runner::resolve {
namespace {

constexpr const char* kMap = "placement.device_map";
constexpr const char* kMemory = "placement.max_memory";
constexpr const char* kDevices = "the devices are 0, 1 and so on, cpu and disk";

bool is_scalar(const core::Node& node) { return !node.is_mapping() && !node.is_sequence() && !node.is_null(); }

bool is_way(const std::string& word) {
  return word == "auto" || word == "balanced" || word == "balanced_low_0" || word == "sequential";
}

void device_map(SettledTree& tree) {
  const core::Node* map = tree.value(kMap);
  if (map == nullptr) return;
  if (!map->is_mapping()) {
    if (map->is_string() && is_way(map->as_string())) return;
    return tree.error(kMap, std::string(kMap) + " is " + core::to_json(*map, -1),
                      "write auto, balanced, balanced_low_0 or sequential, or a mapping of modules to devices");
  }
  for (const core::Node::Entry& entry : map->entries()) {
    if (is_scalar(entry.value) && placement::device_of_text(entry.value.scalar_text())) continue;
    tree.error_at(entry.value.location(),
                  std::string(kMap) + " gives \"" + entry.key + "\" the device " + core::to_json(entry.value, -1),
                  kDevices);
  }
  if (map->entries().empty()) {
    tree.error(kMap, std::string(kMap) + " is empty", "write auto, or give modules a device");
  }
  if (tree.value(kMemory) != nullptr) {
    tree.error(kMemory, std::string(kMemory) + " is for maps that are chosen, and device_map says where each module is",
               "remove it, or write device_map: auto");
  }
}

void max_memory(SettledTree& tree) {
  const core::Node* memory = tree.value(kMemory);
  if (memory == nullptr) return;
  if (!memory->is_mapping() || memory->entries().empty()) {
    return tree.error(kMemory, std::string(kMemory) + " is " + core::to_json(*memory, -1),
                      "write bytes by device: {0: 10GiB, cpu: 30GiB}");
  }
  const bool on_cpu = tree.text("device") == "cpu";
  for (const core::Node::Entry& entry : memory->entries()) {
    const auto device = placement::device_of_text(entry.key);
    if (!device) {
      tree.error_at(entry.value.location(), std::string(kMemory) + " names \"" + entry.key + "\"", kDevices);
      continue;
    }
    if (!is_scalar(entry.value) || !core::parse_bytes(entry.value.scalar_text())) {
      tree.error_at(entry.value.location(),
                    std::string(kMemory) + "." + entry.key + " is " + core::to_json(entry.value, -1),
                    "write a size such as 10GiB, or a number of bytes");
    } else if (device->is_accelerator() && on_cpu) {
      tree.error_at(entry.value.location(),
                    std::string(kMemory) + " gives accelerator " + entry.key + " memory, and the device is the CPU",
                    "remove it, or set device: cuda");
    }
  }
}

}  // namespace

void placement_words(SettledTree& tree) {
  const core::Node* section = tree.value("placement");
  if (section == nullptr || !section->is_mapping()) return;
  device_map(tree);
  max_memory(tree);
  if (!tree.text("init_from.path") && !tree.was_refused("init_from.path") && tree.value(kMap) != nullptr) {
    tree.error("placement", "placement is of trained weights, and init_from names none",
               "add init_from: a folder of Transformers");
  }
  if (tree.text("parallelism.shard")) {
    tree.error("placement",
               "placement says where whole weights are, and parallelism.shard divides them among processes",
               "remove one of them");
  }
}

}  // namespace runner::resolve
