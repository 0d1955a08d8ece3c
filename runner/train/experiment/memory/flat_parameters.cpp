#include "runner/train/experiment/memory/flat_parameters.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace runner::train {
namespace {

/// A module, by the names of what is in it.
struct Module {
  std::string path;
  std::vector<std::size_t> own;                   // parameters
  std::vector<std::unique_ptr<Module>> children;  // in the order of the first parameter in each
  std::int64_t elements = 0;                      // with those of the children
  bool is_unit = false;

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
};

Module& child_of(Module& module, std::string_view name) {
  for (const auto& child : module.children) {
    if (child->name() == name) return *child;
  }
  module.children.push_back(std::make_unique<Module>());
  module.children.back()->path = (module.path.empty() ? "" : module.path + ".") + std::string(name);
  return *module.children.back();
}

Module tree_of(const std::vector<FlatMember>& members) {
  Module root;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Module* module = &root;
    module->elements += members[i].elements;
    std::string_view rest = members[i].name;
    for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
      module = &child_of(*module, rest.substr(0, dot));
      module->elements += members[i].elements;
      rest.remove_prefix(dot + 1);
    }
    module->own.push_back(i);
  }
  return root;
}

bool is_list(const Module& module) {
  return module.own.empty() && std::all_of(module.children.begin(), module.children.end(), [](const auto& child) {
           const std::string_view name = child->name();
           return name.find_first_not_of("0123456789") == name.npos;
         });
}

/// Makes units of what is large enough in a module and below; how many of its elements are in them then.
std::int64_t wrap_large(Module& module, std::int64_t min_elements, bool is_root) {
  if (module.elements < min_elements) return 0;
  std::int64_t wrapped = 0;
  for (const auto& child : module.children) wrapped += wrap_large(*child, min_elements, false);
  if (is_root || is_list(module) || module.elements - wrapped < min_elements) return wrapped;
  module.is_unit = true;
  return module.elements;
}

void wrap_named(Module& module, const std::set<std::string>& paths) {
  module.is_unit = paths.contains(module.path);
  for (const auto& child : module.children) wrap_named(*child, paths);
}

/// Adds the units of a module in pre-order. What is in no unit below is in `unit`, a position: units grow meanwhile.
void collect(const Module& module, std::size_t unit, std::vector<FlatUnit>& units) {
  units[unit].members.insert(units[unit].members.end(), module.own.begin(), module.own.end());
  for (const auto& child : module.children) {
    std::size_t of_child = unit;
    if (child->is_unit) {
      of_child = units.size();
      units.push_back({child->path, {}, 0, 0, {}});
    }
    collect(*child, of_child, units);
  }
}

std::int64_t rounded_up(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

void measure(FlatUnit& unit, const std::vector<FlatMember>& members, const FlatSharding& sharding) {
  for (const std::size_t member : unit.members) {
    if (sharding.align_to > 0) unit.elements = rounded_up(unit.elements, sharding.align_to);
    unit.elements += members[member].elements;
  }
  if (sharding.align_to > 0) unit.elements = rounded_up(unit.elements, sharding.processes);
  unit.own_elements = sharding.own(unit.elements);
  for (int process = 0; process < sharding.processes; ++process) {
    const std::int64_t begin = sharding.shards ? process * unit.own_elements : 0;
    const std::int64_t real = std::clamp<std::int64_t>(unit.elements - begin, 0, unit.own_elements);
    unit.padding.push_back(unit.own_elements - real);
  }
}

}  // namespace

std::vector<FlatUnit> flat_units(const std::vector<FlatMember>& members, const FlatWrapping& wrapping,
                                 const FlatSharding& sharding) {
  Module root = tree_of(members);
  if (wrapping.policy == FlatWrapping::Policy::kSize) wrap_large(root, wrapping.min_elements, true);
  if (wrapping.policy == FlatWrapping::Policy::kModules) wrap_named(root, wrapping.modules);
  std::vector<FlatUnit> units(1);
  collect(root, 0, units);
  std::erase_if(units, [](const FlatUnit& unit) { return unit.members.empty(); });
  for (FlatUnit& unit : units) measure(unit, members, sharding);
  return units;
}

}  // namespace runner::train
