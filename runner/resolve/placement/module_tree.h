#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace runner::resolve::placement {

/// A tensor that a module has of its own.
struct ModuleTensor {
  std::string name;  ///< within the module: `weight`
  std::int64_t elements = 0, element_bytes = 4;
  bool is_floating = true;  ///< others keep their type whatever the weights become
};

/// A module of a model: what it has of its own, then the modules in it; each in its order of declaration.
struct Module {
  std::string name;  ///< within the one that it is in
  std::string kind;  ///< its class, `Linear`
  std::vector<ModuleTensor> parameters = {}, buffers = {};
  std::vector<Module> children = {};
};

/// A model as device maps see it.
struct ModuleTree {
  Module root;
  /// Full names of parameters that are another one of the tree, and of that one.
  std::map<std::string, std::string> ties;
};

/// Bytes by the full name of modules and tensors, "" being the whole, in the order in which tensors are met: parameters
/// before buffers. A parameter with several names counts under the first.
class ModuleBytes {
 public:
  /// `element_bytes`: of what the floating-point tensors become, where that is less than what they have.
  explicit ModuleBytes(const ModuleTree& tree, std::optional<std::int64_t> element_bytes = {});

  std::int64_t of(const std::string& name) const;  ///< 0 for what has no tensor of its own
  const std::vector<std::string>& names() const { return names_; }

 private:
  void add(const std::string& path, const ModuleTensor& tensor, std::optional<std::int64_t> element_bytes);

  std::map<std::string, std::int64_t> bytes_;
  std::vector<std::string> names_;
};

/// The names of each parameter that has several, sorted.
std::vector<std::vector<std::string>> tied_groups(const ModuleTree& tree);

/// The module of that full name; null: there is none.
const Module* find_module(const ModuleTree& tree, const std::string& name);

/// Full names of all tensors of the tree, module by module, as a state dict has them.
std::vector<std::string> tensor_names(const ModuleTree& tree);

inline std::string joined_name(const std::string& parent, const std::string& child) {
  return parent.empty() ? child : parent + "." + child;
}

}  // namespace runner::resolve::placement
