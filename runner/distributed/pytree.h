#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runner/core/node.h"
#include "runner/distributed/tensor_description.h"

namespace runner::distributed {

/// A tensor, plain data, or a list or mapping of such, as in a batch.
struct Pytree {
  using List = std::vector<Pytree>;
  using Mapping = std::vector<std::pair<std::string, Pytree>>;  ///< in order of arrival

  std::variant<at::Tensor, core::Node, List, Mapping> value;

  const at::Tensor* tensor() const { return std::get_if<at::Tensor>(&value); }
  const core::Node* data() const { return std::get_if<core::Node>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  const Mapping* mapping() const { return std::get_if<Mapping>(&value); }
};

/// Applies `change` to each tensor. RunError naming `operation` for plain data.
Pytree map_tensors(const Pytree& value, const char* operation,
                   const std::function<at::Tensor(const at::Tensor&)>& change);

/// `{a: float [2], b: [long [1], data]}`
std::string description_of(const Pytree& value);

}  // namespace runner::distributed
