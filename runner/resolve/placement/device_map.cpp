#include "runner/resolve/placement/device_map.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "runner/core/error.h"

namespace runner::resolve::placement {
namespace {

/// A module, or a tensor of its own that a split module left, that has no device yet.
struct Item {
  std::string name;
  const Module* module;  ///< null: a tensor

  bool can_be_split(const std::set<std::string>& whole) const {
    return module != nullptr && !module->children.empty() && !whole.contains(module->kind);
  }
};
using Items = std::vector<Item>;

/// What a module is split into: its own parameters, then what is in it.
Items parts_of(const Item& item) {
  Items parts;
  for (const ModuleTensor& tensor : item.module->parameters) {
    parts.push_back({joined_name(item.name, tensor.name), nullptr});
  }
  for (const Module& child : item.module->children) parts.push_back({joined_name(item.name, child.name), &child});
  return parts;
}

void replace(Items& items, std::size_t at, Items parts) {
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), parts.begin(), parts.end());
}

LargestLayer largest_of(Items items, const ModuleBytes& bytes, const std::set<std::string>& whole) {
  LargestLayer largest;
  while (!items.empty()) {
    const Item item = items.front();
    if (item.can_be_split(whole)) {
      Items parts;
      for (const Module& child : item.module->children) parts.push_back({joined_name(item.name, child.name), &child});
      replace(items, 0, std::move(parts));
      continue;
    }
    items.erase(items.begin());
    const std::int64_t size = bytes.of(item.name);
    if (size > largest.bytes) largest = {size, {}};
    if (size == largest.bytes) largest.names.push_back(item.name);
  }
  return largest;
}

bool is_in(const std::string& tensor, const std::string& module) {
  return (tensor + ".").find(module + ".") != std::string::npos;
}

/// Parameters outside of a module that are one with a parameter in it.
std::vector<std::string> tied_outside(const std::string& module, const std::vector<std::vector<std::string>>& groups) {
  std::vector<std::string> outside;
  for (const std::vector<std::string>& group : groups) {
    const auto in = [&module](const std::string& name) { return is_in(name, module); };
    if (std::none_of(group.begin(), group.end(), in)) continue;
    std::copy_if(group.begin(), group.end(), std::back_inserter(outside),
                 [&in](const std::string& name) { return !in(name); });
  }
  return outside;
}

/// A module with those that have parameters of it.
struct WithTies {
  std::int64_t bytes = 0;
  std::vector<std::string> names;  ///< of the others
};

WithTies with_ties(const std::string& name, const std::vector<std::string>& tied, const ModuleBytes& bytes,
                   const Items& others) {
  WithTies all{bytes.of(name), {}};
  for (const std::string& parameter : tied) {
    const auto at = std::find_if(others.begin(), others.end(),
                                 [&](const Item& item) { return parameter.starts_with(item.name + "."); });
    if (at == others.end()) continue;  // it has its place
    all.names.push_back(at->name);
    all.bytes += bytes.of(at->name) - bytes.of(parameter);
  }
  return all;
}

/// Modules of one device become the one that they are all of. Inner ones are visited in the order of `names`.
void join_modules(DeviceMap& map, const std::string& module, const std::vector<std::string>& names) {
  const std::string prefix = module.empty() ? "" : module + ".";
  std::size_t joined = 0;
  std::set<Device> devices;
  for (const auto& [name, device] : map) {
    if (!name.starts_with(prefix)) continue;
    ++joined;
    devices.insert(device);
  }
  if (devices.size() == 1 && joined > 1) {
    std::erase_if(map, [&prefix](const auto& entry) { return entry.first.starts_with(prefix); });
    map.emplace_back(module, *devices.begin());
  }
  std::vector<std::string> inner;
  for (const auto& [name, device] : map) {
    if (!name.starts_with(prefix) || name.size() <= module.size()) continue;
    std::string child = name.substr(0, name.find('.', prefix.size()));
    if (std::find(inner.begin(), inner.end(), child) == inner.end()) inner.push_back(std::move(child));
  }
  const auto place = [&names](const std::string& name) { return std::find(names.begin(), names.end(), name); };
  std::stable_sort(inner.begin(), inner.end(),
                   [&place](const std::string& one, const std::string& other) { return place(one) < place(other); });
  for (const std::string& child : inner) join_modules(map, child, names);
}

class Filling {
 public:
  Filling(const ModuleTree& tree, const DeviceBytes& max_memory, const MapOptions& options)
      : options_(options), bytes_(tree, options.element_bytes), ties_(tied_groups(tree)) {
    for (const auto& [device, bytes] : max_memory) room_[device] = bytes;
    for (const auto& [device, bytes] : room_) devices_.push_back(device);
    if (!room_.contains(Device::disk())) devices_.push_back(Device::disk());
    keeps_room_.insert(Device::cpu());
    if (devices_.front().is_accelerator()) keeps_room_.insert(devices_.front());
    waiting_ = parts_of({"", &tree.root});
    for (const ModuleTensor& tensor : tree.root.buffers) waiting_.push_back({tensor.name, nullptr});
    largest_ = largest_of(waiting_, bytes_, options_.whole);
  }

  DeviceMap run() {
    while (!waiting_.empty()) place_next();
    join_modules(map_, "", bytes_.names());
    return std::move(map_);
  }

 private:
  void measure_largest() {
    Items modules;
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(modules),
                 [](const Item& item) { return item.module != nullptr; });
    largest_ = largest_of(std::move(modules), bytes_, options_.whole);
  }

  void place_next() {
    const Item item = waiting_.front();
    waiting_.erase(waiting_.begin());
    std::erase_if(largest_.names,
                  [&item](const std::string& name) { return name == item.name || name.starts_with(item.name + "."); });
    if (largest_.names.empty()) measure_largest();
    const Device& device = devices_[current_];
    const std::vector<std::string> tied = tied_outside(item.name, ties_);
    const WithTies all = with_ties(item.name, tied, bytes_, waiting_);
    if (device == Device::disk()) return place(item, all);
    const std::int64_t kept = keeps_room_.contains(device) ? largest_.bytes : 0;
    const std::int64_t left = room_.at(device) - kept - used_[device];
    if (all.bytes <= left) return place(item, all);
    const std::int64_t alone = bytes_.of(item.name);
    if (!tied.empty() && alone <= left && split_one_of(item, all.names)) return;
    if (alone >= left && item.can_be_split(options_.whole)) {
      Items parts = parts_of(item);
      waiting_.insert(waiting_.begin(), parts.begin(), parts.end());
      return measure_largest();
    }
    if (used_[device] == 0 && options_.falls_back &&
        bring_forward(item, room_.at(device) - std::max(largest_.bytes, all.bytes))) {
      return;
    }
    used_[device] += kept;
    ++current_;
    waiting_.insert(waiting_.begin(), item);
  }

  void place(const Item& item, const WithTies& all) {
    const Device& device = devices_[current_];
    used_[device] += all.bytes;
    set(item.name);
    for (const std::string& name : all.names) {
      std::erase_if(waiting_, [&name](const Item& other) { return other.name == name; });
      set(name);
    }
  }

  void set(const std::string& name) {
    const auto at = std::find_if(map_.begin(), map_.end(), [&name](const auto& entry) { return entry.first == name; });
    if (at == map_.end()) map_.emplace_back(name, devices_[current_]);
  }

  /// So that what shares parameters with the item becomes smaller. False: none of them can be split.
  bool split_one_of(const Item& item, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto at =
          std::find_if(waiting_.begin(), waiting_.end(), [&name](const Item& other) { return other.name == name; });
      if (at == waiting_.end() || !at->can_be_split(options_.whole)) continue;
      const Items parts = parts_of(*at);
      replace(waiting_, static_cast<std::size_t>(at - waiting_.begin()), parts);
      waiting_.insert(waiting_.begin(), item);
      measure_largest();
      return true;
    }
    return false;
  }

  /// Puts the first module that fits before the item. False: none does.
  bool bring_forward(const Item& item, std::int64_t room) {
    if (room < 0) return false;
    Items search = waiting_;
    std::optional<Item> found;
    while (!search.empty() && !found) {
      const Item one = search.front();
      search.erase(search.begin());
      if (with_ties(one.name, tied_outside(one.name, ties_), bytes_, search).bytes <= room) {
        found = one;
      } else if (one.can_be_split(options_.whole)) {
        const Items parts = parts_of(one);
        search.insert(search.begin(), parts.begin(), parts.end());
      }
    }
    if (!found) return false;
    const auto named = [&](const std::string& name) {
      return std::find_if(waiting_.begin(), waiting_.end(), [&](const Item& other) { return other.name == name; });
    };
    for (std::size_t dot = found->name.find('.'); dot != std::string::npos; dot = found->name.find('.', dot + 1)) {
      if (const auto at = named(found->name.substr(0, dot)); at != waiting_.end()) {
        replace(waiting_, static_cast<std::size_t>(at - waiting_.begin()), parts_of(Item(*at)));
      }
    }
    const auto at = named(found->name);
    RUNNER_ASSERT(at != waiting_.end(), "a module is found among those that wait");
    waiting_.erase(at);
    waiting_.insert(waiting_.begin(), {*found, item});
    return true;
  }

  const MapOptions& options_;
  const ModuleBytes bytes_;
  const std::vector<std::vector<std::string>> ties_;
  std::map<Device, std::int64_t> room_, used_;
  std::vector<Device> devices_;  // in the order in which they are filled
  std::set<Device> keeps_room_;
  std::size_t current_ = 0;
  Items waiting_;
  LargestLayer largest_;
  DeviceMap map_;
};

/// Modules without any in them, and tensors of a tree of names.
std::vector<std::string> leaves_of(const std::vector<std::string>& names) {
  std::set<std::string> parents;
  for (const std::string& name : names) {
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) parents.insert(name.substr(0, dot));
  }
  std::vector<std::string> leaves;
  std::copy_if(names.begin(), names.end(), std::back_inserter(leaves),
               [&parents](const std::string& name) { return !name.empty() && !parents.contains(name); });
  return leaves;
}

/// The largest of the first modules of each class that is never split.
std::int64_t whole_bytes(const ModuleTree& tree, const ModuleBytes& bytes, const std::set<std::string>& whole) {
  std::set<std::string> seen;
  std::int64_t most = 0;
  for (const std::string& name : bytes.names()) {
    const Module* module = name.empty() ? nullptr : find_module(tree, name);
    if (module == nullptr || !whole.contains(module->kind) || !seen.insert(module->kind).second) continue;
    most = std::max(most, bytes.of(name));
  }
  return most;
}

}  // namespace

std::string to_text(const Device& device) {
  switch (device.kind) {
    case Device::Kind::kAccelerator: return std::to_string(device.index);
    case Device::Kind::kCpu: return "cpu";
    case Device::Kind::kDisk: return "disk";
  }
  return "";
}

std::optional<Device> device_of_text(const std::string& text) {
  if (text == "cpu") return Device::cpu();
  if (text == "disk") return Device::disk();
  constexpr std::string_view kCuda = "cuda:";
  const std::string_view digits = std::string_view(text).substr(text.starts_with(kCuda) ? kCuda.size() : 0);
  int index = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || failed != std::errc() || end != digits.data() + digits.size() || index < 0) return {};
  return Device::accelerator(index);
}

DeviceMap infer_device_map(const ModuleTree& tree, const DeviceBytes& max_memory, const MapOptions& options) {
  return Filling(tree, max_memory, options).run();
}

DeviceBytes balanced_memory(const ModuleTree& tree, const DeviceBytes& max_memory, const MapOptions& options,
                            bool low_zero) {
  DeviceBytes memory = max_memory;
  std::sort(memory.begin(), memory.end());
  std::vector<std::int64_t*> filled;  // of accelerators, in order
  for (auto& [device, bytes] : memory) {
    if (device.is_accelerator() && bytes > 0) filled.push_back(&bytes);
  }
  if (filled.empty()) return memory;
  const auto count = static_cast<std::int64_t>(filled.size());
  low_zero = low_zero && count > 1;
  const ModuleBytes sizes(tree, options.element_bytes);
  std::vector<std::string> modules = sizes.names();
  const std::vector<std::string> tensors = leaves_of(modules);
  std::erase_if(modules, [of = std::set<std::string>(tensors.begin(), tensors.end())](const std::string& name) {
    return of.contains(name);
  });
  const std::vector<std::string> layers = leaves_of(modules);
  std::int64_t mean = 0;
  for (const std::string& layer : layers) mean += sizes.of(layer);
  mean /= std::max<std::int64_t>(1, std::ssize(layers));
  // Layers do not fill a device to its end: without more than its part the last ones would have no place.
  constexpr double kMore = 1.25;
  const auto more =
      static_cast<std::int64_t>(kMore * static_cast<double>(std::max(whole_bytes(tree, sizes, options.whole), mean)));
  const std::int64_t each = sizes.of("") / (low_zero ? count - 1 : count) + more;
  std::int64_t* const zero = memory.front().first == Device::accelerator(0) ? &memory.front().second : nullptr;
  for (std::size_t i = 0; i + 1 < filled.size(); ++i) {
    if (!(low_zero && filled[i] == zero)) *filled[i] = std::min(each, *filled[i]);
  }
  if (low_zero && zero != nullptr) {
    std::int64_t others = 0;
    for (const auto& [device, bytes] : memory) {
      if (device.is_accelerator() && device.index >= 1 && device.index < count) others += bytes;
    }
    *zero = std::min(std::max<std::int64_t>(0, sizes.of("") - others), *zero);
  }
  return memory;
}

LargestLayer largest_layer(const ModuleTree& tree, const ModuleBytes& bytes, const std::set<std::string>& whole) {
  Items modules;
  for (const Module& child : tree.root.children) modules.push_back({child.name, &child});
  return largest_of(std::move(modules), bytes, whole);
}

std::vector<std::string> uncovered_tensors(const ModuleTree& tree, const DeviceMap& map) {
  std::vector<std::string> names = tensor_names(tree);
  std::erase_if(names, [&map](const std::string& name) {
    return std::any_of(map.begin(), map.end(), [&name](const auto& entry) {
      return entry.first.empty() || name == entry.first || name.starts_with(entry.first + ".");
    });
  });
  return names;
}

}  // namespace runner::resolve::placement
