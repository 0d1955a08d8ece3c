#include "runner/train/placement/block_places.h"

#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <map>
#include <utility>

#include "components/block/quantized.h"
#include "components/part/linear_term.h"
#include "components/part/quantized_product.h"
#include "components/tensor/device.h"
#include "components/tensor/tensors.h"
#include "generated/section/launch.h"
#include "generated/section/placement.h"
#include "generated/section/training.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/resolve/recipe.h"

namespace runner::train {
namespace {

namespace placement = resolve::placement;

using components::NamedTensor;
using components::block::Block;
using core::Node;
using placement::Device;

constexpr const char* kBlock = "block";    // the class of modules that are never split
constexpr double kOfOneAccelerator = 0.9;  // of its free memory, as Accelerate has it
constexpr double kOfCpu = 0.8;             // the rest is for what a training computes
constexpr std::size_t kMissingShown = 5;

/// Bytes of a parameter as it will be.
std::int64_t element_bytes(const PlacesInputs& inputs, const NamedTensor& parameter) {
  if (inputs.in_bf16.contains(parameter.name)) return 2;
  return static_cast<std::int64_t>(parameter.tensor.element_size());
}

/// A tensor's name within its block, whose name many begin with.
std::string within(const Block& block, const std::string& name) {
  const std::string& of = block.name();
  return name.starts_with(of + ".") ? name.substr(of.size() + 1) : name;
}

std::string path_of(const Block& block, const std::string& name) { return block.name() + "." + within(block, name); }

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first <= name.size();) {
    const std::size_t end = std::min(name.find('.', first), name.size());
    parts.push_back(name.substr(first, end - first));
    first = end + 1;
  }
  return parts;
}

placement::Module& child_of(placement::Module& parent, const std::string& name) {
  for (placement::Module& child : parent.children) {
    if (child.name == name) return child;
  }
  return parent.children.emplace_back(placement::Module{name, ""});
}

/// The blocks, in modules by the parts of their names.
placement::ModuleTree tree_of(const PlacesInputs& inputs) {
  placement::ModuleTree tree;
  std::map<std::string, std::string> paths;
  for (const auto& block : inputs.on_meta.blocks()) {
    for (const NamedTensor& parameter : block->parameters()) {
      paths.emplace(parameter.name, path_of(*block, parameter.name));
    }
  }
  for (const auto& block : inputs.on_meta.blocks()) {
    placement::Module* module = &tree.root;
    for (const std::string& part : parts_of(block->name())) module = &child_of(*module, part);
    module->kind = kBlock;
    for (const NamedTensor& parameter : block->parameters()) {
      module->parameters.push_back(
          {within(*block, parameter.name), parameter.tensor.numel(), element_bytes(inputs, parameter)});
    }
    for (const components::part::NamedProduct& weight : block->quantized()) {
      module->parameters.push_back({within(*block, weight.name), weight.product->bytes(), 1, false});
    }
    for (const components::block::Tie& tie : block->ties()) {
      module->parameters.push_back({within(*block, tie.name)});
      tree.ties.emplace(path_of(*block, tie.name), paths.at(tie.owner));
    }
    for (const NamedTensor& buffer : block->buffers()) {
      module->buffers.push_back({within(*block, buffer.name), buffer.tensor.numel(),
                                 static_cast<std::int64_t>(buffer.tensor.element_size()), false});
    }
  }
  return tree;
}

int accelerators() {
  const auto kind = components::named_device("cuda").type();
  return at::globalContext().getAcceleratorHooksInterface(kind).deviceCount();
}

/// What the devices have now. Of the CPU what is left beside the process itself.
placement::DeviceBytes free_bytes(const PlacesInputs& inputs) {
  placement::DeviceBytes free;
  const c10::Device& device = inputs.device;
  if (!device.is_cpu()) {
    auto* const allocator = at::getDeviceAllocator(device.type());
    for (int i = 0; i < accelerators(); ++i) {
      free.emplace_back(Device::accelerator(i), allocator->getMemoryInfo(static_cast<c10::DeviceIndex>(i)).first);
    }
    if (free.size() == 1)
      free[0].second = static_cast<std::int64_t>(kOfOneAccelerator * static_cast<double>(free[0].second));
  }
  std::int64_t of_cpu = core::free_memory();
  if (device.is_cpu() && inputs.for_training)
    of_cpu = std::min(of_cpu, inputs.recipe.training->max_memory.value_or(of_cpu));
  free.emplace_back(Device::cpu(), static_cast<std::int64_t>(kOfCpu * static_cast<double>(of_cpu)));
  return free;
}

/// Where the CPU computes it has what two blocks of the disk take, too; one of them a map leaves free.
void keep_second_room(placement::DeviceBytes& free, const placement::ModuleTree& tree) {
  if (free.front().first.is_accelerator()) return;
  const auto largest = placement::largest_layer(tree, placement::ModuleBytes(tree), {kBlock}).bytes;
  free.back().second = std::max<std::int64_t>(0, free.back().second - largest);
}

/// `placement.max_memory`, or what there is.
std::optional<placement::DeviceBytes> memory_of(const PlacesInputs& inputs, const placement::ModuleTree& tree,
                                                core::Diagnostics& diagnostics) {
  const auto& written = inputs.recipe.placement->max_memory;
  if (!written) {
    placement::DeviceBytes free = free_bytes(inputs);
    keep_second_room(free, tree);
    return free;
  }
  placement::DeviceBytes memory;
  for (const Node::Entry& entry : written->entries()) {
    const auto device = placement::device_of_text(entry.key);
    const auto bytes = core::parse_bytes(entry.value.scalar_text());
    if (!device || !bytes) return std::nullopt;  // resolve/rules/placement.cpp has said so
    if (device->is_accelerator() && !inputs.for_plan && device->index >= accelerators()) {
      diagnostics.error(
          entry.value.location(),
          "placement.max_memory names accelerator " + entry.key + ", and there are " + std::to_string(accelerators()),
          "leave it out");
      return std::nullopt;
    }
    memory.emplace_back(*device, bytes.value());
  }
  return memory;
}

bool is_of(const std::string& name, const std::string& module) {
  return module.empty() || name == module || name.starts_with(module + ".");
}

/// Of one block: the devices that a map gives its tensors.
struct Given {
  std::set<Device> devices;
  std::vector<std::string> missing;
};

/// A written map, by blocks.
class WrittenMap {
 public:
  WrittenMap(const PlacesInputs& inputs, core::Diagnostics& diagnostics)
      : inputs_(inputs), written_(inputs.recipe.placement->device_map), diagnostics_(diagnostics) {
    for (const Node::Entry& entry : written_.entries()) {
      if (const auto device = placement::device_of_text(entry.value.scalar_text())) {
        devices_.emplace(entry.key, *device);
      }
    }
  }

  /// Nothing after an error.
  std::optional<std::vector<Device>> read() {
    std::vector<Device> places;
    std::vector<std::string> missing;
    bool splits = false;
    for (const auto& block : inputs_.on_meta.blocks()) {
      const Given given = given_of(*block);
      missing.insert(missing.end(), given.missing.begin(), given.missing.end());
      splits = splits || given.devices.size() > 1;
      if (given.devices.size() > 1) refuse_split(*block, given);
      places.push_back(given.devices.empty() ? Device::cpu() : *given.devices.begin());
    }
    refuse_unknown();
    if (!missing.empty()) {
      diagnostics_.error(written_.location(),
                         "placement.device_map gives no device to " + core::joined_first(missing, kMissingShown),
                         "add them, by the names of modules: `\"\": cpu` is for all that no other name is for");
    }
    const bool are_here = check_devices();
    if (splits || !missing.empty() || !are_here || diagnostics_.has_errors()) return std::nullopt;
    return places;
  }

 private:
  Given given_of(Block& block) {
    Given given;
    std::vector<std::string> tensors;
    for (const NamedTensor& parameter : block.parameters()) {
      if (!components::part::is_of_term(parameter.name)) tensors.push_back(parameter.name);
    }
    for (const NamedTensor& buffer : block.buffers()) tensors.push_back(buffer.name);
    for (const components::block::Tie& tie : block.ties()) tensors.push_back(tie.name);
    for (const components::part::NamedProduct& weight : block.quantized()) tensors.push_back(weight.name);
    for (const std::string& tensor : tensors) {
      for (const auto& names : names_of(block, tensor)) {
        const auto* best = longest(names);
        if (best == nullptr) {
          given.missing.push_back(names.size() > 2 ? names[2] : names[1]);
        } else {
          given.devices.insert(best->second);
        }
      }
    }
    return given;
  }

  /// The most particular entry for a tensor with these names.
  const std::pair<const std::string, Device>* longest(const std::vector<std::string>& names) {
    const std::pair<const std::string, Device>* best = nullptr;
    for (const auto& entry : devices_) {
      const auto is_its = [&entry](const std::string& name) { return is_of(name, entry.first); };
      if (std::none_of(names.begin(), names.end(), is_its)) continue;
      used_.insert(entry.first);
      if (best == nullptr || entry.first.size() > best->first.size()) best = &entry;
    }
    return best;
  }

  /// Those of Transformers last, if it has any.
  std::vector<std::vector<std::string>> names_of(const Block& block, const std::string& tensor) const {
    auto parts = components::model::names_of_parts(inputs_.recipe.model, tensor);
    for (auto& names : parts) names.insert(names.begin(), path_of(block, tensor));
    return parts;
  }

  void refuse_split(const Block& block, const Given& given) {
    std::vector<std::string> words;
    for (const Device& device : given.devices) words.push_back(to_text(device));
    std::vector<std::string> parts;
    for (const NamedTensor& parameter : block.parameters()) {
      for (const auto& names : names_of(block, parameter.name)) parts.push_back(names.size() > 2 ? names[2] : names[0]);
    }
    diagnostics_.error(
        written_.location(),
        "placement.device_map gives parts of the block " + block.name() + " different devices: " + core::joined(words),
        "it is never split: give one device to " + core::joined_first(parts, kMissingShown));
  }

  void refuse_unknown() {
    std::vector<std::string> known;
    for (const auto& block : inputs_.on_meta.blocks()) known.push_back(block->name());
    for (const Node::Entry& entry : written_.entries()) {
      if (used_.contains(entry.key) || !devices_.contains(entry.key)) continue;
      const std::string near = core::closest(entry.key, known);
      diagnostics_.error(
          entry.value.location(), "placement.device_map names \"" + entry.key + "\", but this model has no such module",
          near.empty() ? "its blocks are " + core::joined_first(known, kMissingShown) : "did you mean " + near + "?");
    }
  }

  bool check_devices() {
    bool are_here = true;
    const bool on_cpu = inputs_.device.is_cpu();
    for (const Node::Entry& entry : written_.entries()) {
      const auto device = placement::device_of_text(entry.value.scalar_text());
      if (!device || !device->is_accelerator() || inputs_.for_plan) continue;
      const int count = on_cpu ? 0 : accelerators();
      if (device->index < count) continue;
      are_here = false;
      diagnostics_.error(entry.value.location(),
                         "placement.device_map puts " + (entry.key.empty() ? "the model" : entry.key) +
                             " on accelerator " + to_text(*device) +
                             (on_cpu ? ", and the device is the CPU" : ", and there are " + std::to_string(count)),
                         on_cpu ? "set device: cuda, or write cpu or disk" : "name one that is there");
    }
    return are_here;
  }

  const PlacesInputs& inputs_;
  const Node& written_;
  core::Diagnostics& diagnostics_;
  std::map<std::string, Device> devices_;
  std::set<std::string> used_;
};

std::vector<Device> by_block(const components::model::Model& model, const placement::DeviceMap& map) {
  std::vector<Device> places;
  for (const auto& block : model.blocks()) {
    const auto at =
        std::find_if(map.begin(), map.end(), [&](const auto& entry) { return is_of(block->name(), entry.first); });
    places.push_back(at == map.end() ? map.front().second : at->second);
  }
  return places;
}

/// By the way that a word names.
std::optional<std::vector<Device>> inferred(const PlacesInputs& inputs, core::Diagnostics& diagnostics) {
  const placement::ModuleTree tree = tree_of(inputs);
  auto memory = memory_of(inputs, tree, diagnostics);
  if (!memory) return std::nullopt;
  const std::string way = inputs.recipe.placement->device_map.as_string();
  const placement::MapOptions options{{kBlock}, {}, false};
  if (way != "sequential") memory = placement::balanced_memory(tree, *memory, options, way == "balanced_low_0");
  return by_block(inputs.on_meta, placement::infer_device_map(tree, *memory, options));
}

/// Runs of blocks on one device.
placement::DeviceMap joined_map(const components::model::Model& model, const std::vector<Device>& places) {
  placement::DeviceMap map;
  for (std::size_t i = 0; i < places.size(); ++i) map.emplace_back(model.blocks()[i]->name(), places[i]);
  return map;
}

/// Parameters that several blocks read.
std::set<std::string> shared_parameters(const components::model::Model& model) {
  std::set<std::string> shared;
  for (const components::block::Tie& tie : model.ties()) shared.insert(tie.owner);
  return shared;
}

/// Tied ones have to be in one place, as they are one tensor.
bool check_ties(const PlacesInputs& inputs, const BlockPlaces& places, core::Diagnostics& diagnostics) {
  std::map<std::string, std::size_t> owners;
  const auto& blocks = inputs.on_meta.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const NamedTensor& parameter : blocks[i]->parameters()) owners.emplace(parameter.name, i);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const components::block::Tie& tie : blocks[i]->ties()) {
      const auto owner = owners.find(tie.owner);
      if (owner == owners.end() || places.of_block[owner->second] == places.of_block[i]) continue;
      diagnostics.error(
          inputs.recipe.at("placement").location(),
          "placement has " + tie.owner + " on " + to_text(places.of_block[owner->second]) + " and " + tie.name +
              " on " + to_text(places.of_block[i]) + ", but they are one tensor",
          "put the blocks " + blocks[owner->second]->name() + " and " + blocks[i]->name() + " on one device");
      return false;
    }
  }
  return true;
}

/// What travels, and that it can.
bool settle_travelling(const PlacesInputs& inputs, BlockPlaces& places, core::Diagnostics& diagnostics) {
  const std::set<std::string> shared = shared_parameters(inputs.on_meta);
  const core::Location& at = inputs.recipe.at("placement").location();
  const auto& blocks = inputs.on_meta.blocks();
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool travels = places.travels(i);
    const std::string where = places.of_block[i] == Device::disk() ? "on the disk" : "in the memory of the CPU";
    std::int64_t of_block = 0;
    for (const NamedTensor& parameter : blocks[i]->parameters()) {
      const std::int64_t bytes = parameter.tensor.numel() * element_bytes(inputs, parameter);
      const bool is_term = components::part::is_of_term(parameter.name);
      if (travels && inputs.for_training && parameter.tensor.requires_grad() && !is_term) {
        diagnostics.error(at,
                          "placement has the block " + blocks[i]->name() + " " + where + ", and " + parameter.name +
                              " is to be trained",
                          "train adapters, or give the block's device more room");
        return false;
      }
      if (!travels || is_term || parameter.tensor.dim() < 2 || shared.contains(parameter.name)) continue;
      places.travelling.insert(parameter.name);
      of_block += bytes;
    }
    if (travels && !blocks[i]->quantized().empty()) {
      diagnostics.error(at,
                        "placement has the block " + blocks[i]->name() + " " + where +
                            ", and its weights are kept in fewer bits, which stay where they compute",
                        "give the block's device more room, or leave quantization out");
      return false;
    }
    places.travelling_bytes += of_block;
    largest = std::max(largest, of_block);
  }
  constexpr int kAtOnce = 2;  // the one that computes, and the next one
  places.room_bytes = kAtOnce * largest;
  return true;
}

}  // namespace

bool BlockPlaces::travels(std::size_t block) const {
  const Device& device = of_block[block];
  return device == Device::disk() || (device == Device::cpu() && !main.is_cpu());
}

c10::Device BlockPlaces::device_of(std::size_t block) const {
  const Device& device = of_block[block];
  return device.is_accelerator() ? c10::Device(main.type(), static_cast<c10::DeviceIndex>(device.index)) : main;
}

std::string BlockPlaces::text() const {
  std::string told;
  for (std::size_t first = 0; first < map.size();) {
    std::size_t end = first + 1;
    while (end < map.size() && map[end].second == map[first].second) ++end;
    told += (told.empty() ? "" : "; ") + to_text(map[first].second) + ": " + map[first].first;
    if (end - first > 1) told += " to " + map[end - 1].first;
    first = end;
  }
  if (any_travels()) told += "; " + core::with_commas(travelling_bytes) + " bytes come for a pass, and go";
  return told;
}

std::optional<BlockPlaces> block_places(const PlacesInputs& inputs, core::Diagnostics& diagnostics) {
  if (!inputs.recipe.placement) return std::nullopt;
  const Node& map = inputs.recipe.placement->device_map;
  auto devices = map.is_mapping() ? WrittenMap(inputs, diagnostics).read() : inferred(inputs, diagnostics);
  if (!devices) return std::nullopt;
  BlockPlaces places{std::move(*devices), {}};
  places.map = joined_map(inputs.on_meta, places.of_block);
  const auto first = std::min_element(places.of_block.begin(), places.of_block.end());
  if (first->is_accelerator()) {
    places.main = c10::Device(components::named_device("cuda").type(), static_cast<c10::DeviceIndex>(first->index));
    const std::int64_t processes = inputs.recipe.launch->num_processes;
    if (inputs.for_training && processes > 1) {
      diagnostics.error(inputs.recipe.at("placement").location(),
                        "placement divides the model among accelerators, and " + std::to_string(processes) +
                            " processes train, each of which has its own",
                        "set launch: {num_processes: 1}, or leave placement out");
      return std::nullopt;
    }
  }
  if (!check_ties(inputs, places, diagnostics) || !settle_travelling(inputs, places, diagnostics)) return std::nullopt;
  return places;
}

}  // namespace runner::train
