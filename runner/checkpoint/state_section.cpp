#include "runner/checkpoint/state_section.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>
#include <utility>

#include "runner/artifact/tensor_set.h"
#include "runner/core/error.h"

namespace runner::checkpoint {
namespace {

using core::Node;

constexpr const char* kNumberKey = "$number";

Node marked(double value) {
  const char* word = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  Node node = Node::mapping();
  node.set(kNumberKey, Node::string(word));
  return node;
}

/// `leaf` converts a node; recurses into nodes that it leaves alone.
template <typename Leaf>
Node mapped(const Node& node, const Leaf& leaf) {
  Node result = node;
  if (leaf(result)) return result;
  for (Node& item : result.items()) item = mapped(item, leaf);
  for (Node::Entry& entry : result.entries()) entry.value = mapped(entry.value, leaf);
  return result;
}

}  // namespace

Node with_marked_numbers(const Node& node) {
  return mapped(node, [](Node& leaf) {
    if (leaf.kind() != Node::Kind::kFloat || std::isfinite(leaf.as_double())) return false;
    leaf = marked(leaf.as_double());
    return true;
  });
}

Node with_plain_numbers(const Node& node) {
  return mapped(node, [](Node& leaf) {
    const Node* word = leaf.entries().size() == 1 ? leaf.find(kNumberKey) : nullptr;
    if (word == nullptr || !word->is_string()) return false;
    const std::string& text = word->as_string();
    const double infinity = std::numeric_limits<double>::infinity();
    leaf = Node::floating(text == "inf" ? infinity : text == "-inf" ? -infinity : std::nan(""));
    return true;
  });
}

void SectionWriter::value(std::string_view name, Node value) { values_.set(name, std::move(value)); }

void SectionWriter::tensor(std::string_view name, const at::Tensor& tensor) { tensors_.add(std::string(name), tensor); }

SectionReader::SectionReader(const std::string& folder, const std::string& name, Node values,
                             CheckpointPrefetch* prefetched)
    : context_(folder + ": the state of " + name), values_(std::move(values)) {
  const std::string set = artifact::tensor_set_path(folder, name + artifact::kSafetensorsEnding);
  if (!set.empty()) tensors_ = std::make_unique<TensorSource>(set, prefetched);
}

const Node& SectionReader::value(std::string_view name) const {
  const Node* value = values_.find(name);
  if (value == nullptr) throw core::RunError(context_ + " has no value " + std::string(name));
  return *value;
}

bool SectionReader::has(std::string_view name) const {
  return values_.find(name) != nullptr || (tensors_ != nullptr && tensors_->find(std::string(name)) != nullptr);
}

at::Tensor SectionReader::tensor(std::string_view name) const {
  if (tensors_ == nullptr) throw core::RunError(context_ + " has no tensor " + std::string(name));
  return tensors_->tensor(std::string(name));
}

}  // namespace runner::checkpoint
