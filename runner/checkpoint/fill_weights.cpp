#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "components/block/quantized.h"
#include "components/part/linear.h"
#include "components/tensor/tensors.h"
#include "runner/artifact/tensor_bytes.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/init_from.h"
#include "runner/checkpoint/packed_fit.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/pretrained/packed/packed_weight.h"

namespace runner::checkpoint {

using artifact::TensorBytes;
using components::NamedTensor;

namespace {

/// The first rows, and the mean of all of the source's for the others, as Transformers' resize_token_embeddings has it
/// but for its noise of 3e-5 of their deviation: rows part with their first gradients. Added up in one order, so that
/// the number of threads changes nothing.
void fill_vocabulary(const TensorSource& source, const TensorBytes& bytes, std::int64_t kept,
                     const at::Tensor& target) {
  if (kept < bytes.shape[0]) {
    return source.copy_to(artifact::rows_of(bytes, 0, kept), target);
  }
  source.copy_to(bytes, target.narrow(0, 0, kept));
  const at::NoGradGuard no_grad;
  const at::Tensor old = target.narrow(0, 0, kept).to(at::kCPU, at::kFloat).reshape({kept, -1}).contiguous();
  const auto width = static_cast<std::size_t>(old.size(1));
  const auto* const values = old.const_data_ptr<float>();
  std::vector<double> sums(width, 0.0);
  for (std::size_t row = 0; row < static_cast<std::size_t>(kept); ++row) {
    for (std::size_t i = 0; i < width; ++i) sums[i] += static_cast<double>(values[row * width + i]);
  }
  at::Tensor mean = at::empty({1, old.size(1)}, old.options());
  for (std::size_t i = 0; i < width; ++i) {
    mean.mutable_data_ptr<float>()[i] = static_cast<float>(sums[i] / static_cast<double>(kept));
  }
  const at::Tensor added = target.narrow(0, kept, target.size(0) - kept);
  added.copy_(mean.reshape(target.dim() == 1 ? at::IntArrayRef{1} : at::IntArrayRef{1, old.size(1)}).expand_as(added));
}

/// Part after part, along the first dimension; of a stack of matrices along their rows.
template <typename BytesOf>
void fill_tensor(const TensorSource& source, const SourceTensor& fill, const at::Tensor& whole,
                 const BytesOf& bytes_of) {
  std::int64_t first = 0;
  const std::size_t dimensions = bytes_of(fill.from.front())->shape.size();
  const bool is_stack = static_cast<std::size_t>(whole.dim()) == dimensions + 1;
  const at::Tensor target = is_stack ? whole.flatten(0, 1) : whole;
  for (const std::string& name : fill.from) {
    const TensorBytes* bytes = bytes_of(name);
    if (std::find(fill.left_out.begin(), fill.left_out.end(), name) != fill.left_out.end()) {
      first += bytes->shape[0];
    } else if (fill.rows_kept) {
      fill_vocabulary(source, *bytes, *fill.rows_kept, target);
    } else if (fill.transposed) {
      source.copy_to(*bytes, target.t());
    } else if (fill.from.size() == 1) {
      source.copy_to(*bytes, target);
    } else {
      source.copy_to(*bytes, target.narrow(0, first, bytes->shape[0]));
      first += bytes->shape[0];
    }
  }
}

/// What fill_tensor() would read.
template <typename BytesOf>
std::vector<FilePart> parts_of(const TensorSource& source, const SourceTensor& fill, const BytesOf& bytes_of) {
  if (fill.rows_kept || !fill.left_out.empty()) {
    throw core::RunError(
        "placement: " + fill.name + " has rows that " + source.path() + " does not give, and cannot stay on the disk",
        "give the memory more room in placement.max_memory", core::kExitUsage);
  }
  std::vector<FilePart> parts;
  std::int64_t first = 0;
  for (const std::string& name : fill.from) {
    const TensorBytes* bytes = bytes_of(name);
    for (FilePart& part : source.parts_of(*bytes, first, fill.transposed)) parts.push_back(std::move(part));
    first += bytes->shape.empty() ? 1 : bytes->shape.front();
  }
  return parts;
}

/// What a source has in fewer bits, which the model keeps so.
template <typename BytesOf>
void fill_packed(const TensorSource& source, const SourceTensor& fill, components::part::Product& product,
                 const BytesOf& bytes_of) {
  std::vector<const pretrained::PackedWeight*> layers;
  for (const std::string& name : fill.from) {
    bytes_of(name);
    layers.push_back(source.packed(name));
  }
  if (const std::string why = why_not_packed(product, layers, fill.from); !why.empty()) {
    throw core::RunError("init_from: of " + source.path() + " " + core::escape_for_terminal(why),
                         "leave quantization as it was when these weights were read", core::kExitUsage);
  }
  product.fill(layers);
  for (const std::string& name : fill.from) source.let_go(*bytes_of(name));
}

}  // namespace

void load_init_weights(const InitWeights& weights, const components::model::Model& model, const WeightAccess& access) {
  if (weights.base != nullptr) weights.base->load_into(model, "", access);
  if (const auto whole = artifact::verify_tensor_set(weights.source); !whole) {
    throw core::RunError("init_from: " + whole.failure().message,
                         "use another checkpoint; `roux checkpoints verify` shows which are intact", core::kExitUsage);
  }
  std::unordered_map<std::string, at::Tensor> targets;
  for (const NamedTensor& named : model.parameters()) targets.emplace(named.name, named.tensor);
  for (const NamedTensor& named : model.buffers()) targets.emplace(named.name, named.tensor);
  std::unordered_map<std::string, components::part::NamedProduct> quantized;
  for (auto& named : components::block::quantized_products(model.blocks())) quantized.emplace(named.name, named);
  const TensorSource source(weights.source);
  const auto bytes_of = [&](const std::string& name) {
    const TensorBytes* bytes = source.find(name);
    if (bytes == nullptr) throw core::RunError("init_from: " + weights.source + " was changed while it was read");
    return bytes;
  };
  const SourceTensor* before = nullptr;
  for (const SourceTensor& fill : weights.fills) {
    if (before != nullptr && before->name == fill.name) {
      const TensorBytes *one = bytes_of(before->from.front()), *other = bytes_of(fill.from.front());
      const bool same = one->dtype == other->dtype && one->bytes == other->bytes && artifact::same_bytes(*one, *other);
      source.let_go(*one);
      source.let_go(*other);
      if (!same) {
        throw core::RunError("init_from: " + one->name + " and " + other->name +
                                 " are one tensor in the model, but differ in " + weights.source,
                             "exclude one of them with init_from.exclude, or build the model without the tie",
                             core::kExitUsage);
      }
      continue;
    }
    before = &fill;
    if (const auto at = quantized.find(fill.name); at != quantized.end()) {
      if (pretrained::is_packed(fill.dtype)) {
        fill_packed(source, fill, *at->second.product, bytes_of);
        continue;
      }
      const auto type = fill.dtype == "BF16" ? at::kBFloat16 : at::kFloat;
      const at::Tensor whole = at::empty(at->second.shape, at::TensorOptions().dtype(type));
      fill_tensor(source, fill, whole, bytes_of);
      at->second.product->fill(whole.flatten(0, -2));
      continue;
    }
    if (access.stays && access.stays(fill.name)) {
      access.stay(fill.name, parts_of(source, fill, bytes_of));
      continue;
    }
    if (access.open) access.open(fill.name);
    const at::Tensor* const other = access.in_place_of ? access.in_place_of(fill.name) : nullptr;
    fill_tensor(source, fill, other != nullptr ? *other : targets.at(fill.name), bytes_of);
    if (access.close) access.close(fill.name);
  }
}

}  // namespace runner::checkpoint
