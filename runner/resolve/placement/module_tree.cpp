#include "runner/resolve/placement/module_tree.h"

#include <algorithm>
#include <functional>
#include <set>

namespace runner::resolve::placement {
namespace {

/// Each module before those in it.
void walk(const std::string& path, const Module& module,
          const std::function<void(const std::string&, const Module&)>& visit) {
  visit(path, module);
  for (const Module& child : module.children) walk(joined_name(path, child.name), child, visit);
}

std::string owner_of(const ModuleTree& tree, std::string name) {
  auto at = tree.ties.find(name);
  for (std::size_t steps = 0; at != tree.ties.end() && steps < tree.ties.size(); ++steps) {  // there may be a circle
    name = at->second;
    at = tree.ties.find(name);
  }
  return name;
}

/// Full names of parameters by what they are, in the order in which they are met.
std::vector<std::vector<std::string>> names_of_parameters(const ModuleTree& tree) {
  std::vector<std::vector<std::string>> groups;
  std::map<std::string, std::size_t> group_of;
  walk("", tree.root, [&](const std::string& path, const Module& module) {
    for (const ModuleTensor& tensor : module.parameters) {
      const std::string name = joined_name(path, tensor.name);
      const auto [at, added] = group_of.try_emplace(owner_of(tree, name), groups.size());
      if (added) groups.emplace_back();
      groups[at->second].push_back(name);
    }
  });
  return groups;
}

}  // namespace

ModuleBytes::ModuleBytes(const ModuleTree& tree, std::optional<std::int64_t> element_bytes) {
  std::set<std::string> seen;
  walk("", tree.root, [&](const std::string& path, const Module& module) {
    for (const ModuleTensor& tensor : module.parameters) {
      if (seen.insert(owner_of(tree, joined_name(path, tensor.name))).second) add(path, tensor, element_bytes);
    }
  });
  walk("", tree.root, [&](const std::string& path, const Module& module) {
    for (const ModuleTensor& tensor : module.buffers) add(path, tensor, element_bytes);
  });
}

void ModuleBytes::add(const std::string& path, const ModuleTensor& tensor, std::optional<std::int64_t> element_bytes) {
  const bool converts = element_bytes && tensor.is_floating;
  const std::int64_t of_element = converts ? std::min(*element_bytes, tensor.element_bytes) : tensor.element_bytes;
  const std::string whole = joined_name(path, tensor.name);
  for (std::size_t end = 0;; end = whole.find('.', end + 1)) {
    const auto [at, added] = bytes_.try_emplace(whole.substr(0, end), 0);
    if (added) names_.push_back(at->first);
    at->second += tensor.elements * of_element;
    if (end == std::string::npos) break;
  }
}

std::int64_t ModuleBytes::of(const std::string& name) const {
  const auto at = bytes_.find(name);
  return at == bytes_.end() ? 0 : at->second;
}

std::vector<std::vector<std::string>> tied_groups(const ModuleTree& tree) {
  std::vector<std::vector<std::string>> groups = names_of_parameters(tree);
  std::erase_if(groups, [](const auto& names) { return names.size() < 2; });
  for (auto& names : groups) std::sort(names.begin(), names.end());
  return groups;
}

const Module* find_module(const ModuleTree& tree, const std::string& name) {
  const Module* module = &tree.root;
  for (std::size_t first = 0; !name.empty() && first <= name.size();) {
    const std::size_t end = std::min(name.find('.', first), name.size());
    const std::string part = name.substr(first, end - first);
    const auto at = std::find_if(module->children.begin(), module->children.end(),
                                 [&part](const Module& child) { return child.name == part; });
    if (at == module->children.end()) return nullptr;
    module = &*at;
    first = end + 1;
  }
  return module;
}

std::vector<std::string> tensor_names(const ModuleTree& tree) {
  std::vector<std::string> names;
  walk("", tree.root, [&](const std::string& path, const Module& module) {
    for (const auto* tensors : {&module.parameters, &module.buffers}) {
      for (const ModuleTensor& tensor : *tensors) names.push_back(joined_name(path, tensor.name));
    }
  });
  return names;
}

}  // namespace runner::resolve::placement
