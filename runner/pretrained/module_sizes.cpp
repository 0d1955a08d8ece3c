#include "runner/pretrained/module_sizes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "runner/pretrained/facts.h"

namespace runner::pretrained {
namespace {

constexpr std::int64_t kFloatBytes = 4;

/// Sums by layer, in the order in which the layers come.
class Layers {
 public:
  void add_weight(const std::string& layer, std::int64_t bytes) {
    parameters_ += bytes / kFloatBytes;
    add(layer, bytes);
  }
  void add(const std::string& layer, std::int64_t bytes) {
    const auto [at, is_new] = bytes_.emplace(layer, 0);
    if (is_new) order_.push_back(layer);
    at->second += bytes;
  }
  ModuleSizes sizes() const {
    ModuleSizes sizes;
    sizes.parameters = parameters_;
    for (const std::string& layer : order_) {
      const std::int64_t bytes = bytes_.at(layer);
      sizes.total += bytes;
      if (bytes > sizes.largest) sizes.largest_names.clear();
      sizes.largest = std::max(sizes.largest, bytes);
      if (bytes == sizes.largest) sizes.largest_names.push_back(layer);
    }
    return sizes;
  }

 private:
  std::int64_t parameters_ = 0;
  std::map<std::string, std::int64_t> bytes_;
  std::vector<std::string> order_;
};

/// `a.b` of `a.b.weight`.
std::string module_of(const std::string& tensor) {
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? tensor : tensor.substr(0, dot);
}

/// `model.layers.3` of `model.layers.3.mlp.up.weight`; without a number the module.
std::string block_of(const std::string& tensor) {
  for (std::size_t at = 0; at < tensor.size();) {
    const std::size_t dot = std::min(tensor.find('.', at), tensor.size());
    const bool is_number = dot > at && tensor.find_first_not_of("0123456789", at) >= dot;
    if (is_number && dot < tensor.size()) return tensor.substr(0, dot);
    at = dot + 1;
  }
  return module_of(tensor);
}

std::string layer_of(const ModelType& type, const std::string& tensor) {
  const std::string block = block_of(tensor);
  for (const std::string& pattern : type.undivided) {
    if (number_in(pattern, block)) return block;
    if (tensor.starts_with(pattern + ".")) return pattern;
  }
  return module_of(tensor);
}

std::int64_t bytes_of(const UnreadTensor& tensor, const Facts& facts) {
  std::int64_t bytes = tensor.item_bytes;
  for (const std::string& role : tensor.sizes) bytes *= role == "head" ? facts.head() : facts.integer(role, 0);
  return bytes;
}

}  // namespace

std::int64_t TensorShape::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

ModuleSizes module_sizes(const ModelType& type, const core::Node& config, const std::vector<TensorShape>& tensors) {
  const Facts facts(type, config);
  Layers layers;
  for (const TensorShape& tensor : tensors) {
    const std::int64_t bytes = kFloatBytes * tensor.elements();
    const WeightRule* rule = type.rule_of(tensor.name);
    if (rule == nullptr) {
      layers.add_weight(module_of(tensor.name), bytes);
      continue;
    }
    const std::int64_t number = *number_in(rule->name, tensor.name);
    if (rule->is_of_experts()) {
      layers.add_weight(layer_of(type, with_number(rule->stacked, number)), bytes);
      continue;
    }
    const std::int64_t rows = tensor.shape.front();
    const std::vector<std::int64_t> of_parts = rows_of_parts(*rule, rows, facts);
    for (std::size_t i = 0; i < rule->from.size(); ++i) {
      layers.add_weight(layer_of(type, with_number(rule->from[i], number)), bytes / rows * of_parts[i]);
    }
  }
  if (type.head == kEmbedding) {
    for (const UnreadTensor& weight : type.unread) layers.add_weight(module_of(weight.name), bytes_of(weight, facts));
  }
  for (const UnreadTensor& buffer : type.buffers) layers.add(buffer.name, bytes_of(buffer, facts));
  return layers.sizes();
}

ModuleSizes module_sizes(const std::vector<TensorShape>& tensors) {
  Layers layers;
  for (const TensorShape& tensor : tensors) {
    layers.add_weight(block_of(tensor.name), kFloatBytes * tensor.elements());
  }
  return layers.sizes();
}

std::int64_t AdamSizes::most() const { return std::max({model, gradients, optimizer, step}); }

TypeSizes sizes_in(std::string_view type, const ModuleSizes& sizes) {
  const double divisor = type == "float32" ? 1 : type == "int8" ? 4 : type == "int4" ? 8 : 2;
  TypeSizes found{static_cast<double>(sizes.largest) / divisor, static_cast<double>(sizes.total) / divisor, {}};
  const std::int64_t whole = sizes.total;
  if (type == "float32") found.adam = AdamSizes{whole, whole, 2 * whole, 4 * whole};
  // Weights and gradients in both types, and what is computed in the smaller one.
  if (divisor == 2) found.adam = AdamSizes{whole, whole + whole / 2, 2 * whole, 2 * whole};
  return found;
}

}  // namespace runner::pretrained
