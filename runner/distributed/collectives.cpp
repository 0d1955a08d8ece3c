#include "runner/distributed/collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/distributed/pytree.h"

namespace runner::distributed {
namespace {

using core::Node;

/// A copy that a collective may write to.
at::Tensor own(const at::Tensor& tensor) { return tensor.detach().clone(at::MemoryFormat::Contiguous); }

std::int64_t length_of(const Pytree& value) {
  if (const at::Tensor* tensor = value.tensor()) return tensor->dim() == 0 ? 1 : tensor->size(0);
  if (const Pytree::List* list = value.list()) return static_cast<std::int64_t>(list->size());
  const Node* node = value.data();
  if (node != nullptr && node->is_sequence()) return static_cast<std::int64_t>(node->items().size());
  throw core::RunError("split_between_processes accepts lists, tensors and mappings of them, got " +
                       (node != nullptr ? core::to_json(*node, -1) : description_of(value)));
}

/// A slice of a list, padded to `length` by repeating its last item.
template <typename Items>
Items part_of(const Items& items, std::int64_t begin, std::int64_t end, std::int64_t length) {
  Items part(items.begin() + begin, items.begin() + end);
  while (!items.empty() && static_cast<std::int64_t>(part.size()) < length) part.push_back(items.back());
  return part;
}

at::Tensor part_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t end, std::int64_t length) {
  std::vector<at::Tensor> parts = {tensor.slice(0, begin, end)};
  for (std::int64_t i = end - begin; i < length && tensor.size(0) > 0; ++i) parts.push_back(tensor.slice(0, -1));
  return at::cat(parts);
}

/// Shares of a list of `total` items.
struct Cut {
  std::int64_t begin = 0, end = 0, length = 0;

  Cut(std::int64_t total, const Share& share) {
    const std::int64_t each = total / share.size, extras = total % share.size;
    begin = share.rank * each + std::min<std::int64_t>(share.rank, extras);
    end = begin + each + (share.rank < extras ? 1 : 0);
    length = share.apply_padding ? each + (extras > 0 ? 1 : 0) : 0;
  }
};

Pytree share_of(const Pytree& value, const Cut& cut) {
  if (const at::Tensor* tensor = value.tensor()) return {part_of(*tensor, cut.begin, cut.end, cut.length)};
  if (const Pytree::List* list = value.list()) return {part_of(*list, cut.begin, cut.end, cut.length)};
  return {Node::sequence(part_of(value.data()->items(), cut.begin, cut.end, cut.length))};
}

void check_lengths(const Pytree::Mapping& mapping) {
  for (const auto& [key, item] : mapping) {
    const auto& [first_key, first] = mapping.front();
    if (length_of(item) == length_of(first)) continue;
    throw core::RunError("the entries of a mapping must have equal lengths, but " + first_key + " has " +
                         std::to_string(length_of(first)) + " items and " + key + " has " +
                         std::to_string(length_of(item)));
  }
}

bool is_cut_off(const EpochEnd& end) { return end.last_batch && end.remainder > 0; }

}  // namespace

Pytree gather(ProcessGroup& group, const Pytree& value, const char* site) {
  group.verify_collective("gather", site, description_of(value));
  return map_tensors(value, "gather", [&](const at::Tensor& tensor) {
    const at::Tensor mine = tensor.dim() == 0 ? tensor.reshape({1}) : tensor;
    return at::cat(group.all_gather(mine.detach().contiguous(), site));
  });
}

Pytree reduce(ProcessGroup& group, const Pytree& value, Reduction reduction, const char* site) {
  group.verify_collective("reduce", site, description_of(value));
  const ReduceOp op = reduction == Reduction::kMax ? ReduceOp::kMax : ReduceOp::kSum;
  return map_tensors(value, "reduce", [&](const at::Tensor& tensor) {
    const at::Tensor result = own(tensor);
    group.begin_all_reduce(result, site, op)->wait();
    return reduction == Reduction::kMean ? result / group.size() : result;
  });
}

void take_mean(ProcessGroup& group, const std::vector<at::Tensor>& tensors, const char* site) {
  std::vector<at::Tensor> sums;
  std::vector<std::unique_ptr<Pending>> under_way;
  for (const at::Tensor& tensor : tensors) {
    sums.push_back(own(tensor));
    under_way.push_back(group.begin_all_reduce(sums.back(), site));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    under_way[i]->wait();
    tensors[i].copy_(sums[i].div_(group.size()));
  }
}

Pytree broadcast(ProcessGroup& group, const Pytree& value, int from, const char* site) {
  group.verify_collective("broadcast", site, description_of(value));
  return map_tensors(value, "broadcast", [&](const at::Tensor& tensor) {
    const at::Tensor result = own(tensor);
    group.broadcast(result, from, site);
    return result;
  });
}

Node gather_object(ProcessGroup& group, const Node& list, const char* site) {
  Node all = Node::sequence();
  for (const std::string& json : group.all_gather(core::to_json(list, -1), site)) {
    Node theirs = core::parse_json(json).value();
    for (Node& item : theirs.items()) all.items().push_back(std::move(item));
  }
  return all;
}

Node broadcast_object_list(ProcessGroup& group, const Node& list, int from, const char* site) {
  const std::string mine = group.rank() == from ? core::to_json(list, -1) : "";
  return core::parse_json(group.all_gather(mine, site).at(static_cast<std::size_t>(from))).value();
}

Pytree pad_across_processes(ProcessGroup& group, const Pytree& value, const PadOptions& options, const char* site) {
  return map_tensors(value, "pad_across_processes", [&](const at::Tensor& tensor) {
    const std::int64_t dim = options.dim < 0 ? options.dim + tensor.dim() : options.dim;
    if (dim < 0 || dim >= tensor.dim()) return tensor;
    const at::Tensor length = at::tensor(tensor.size(dim), at::kLong);
    group.begin_all_reduce(length, site, ReduceOp::kMax)->wait();
    std::vector<std::int64_t> shape = tensor.sizes().vec();
    shape[static_cast<std::size_t>(dim)] = length.item<std::int64_t>() - tensor.size(dim);
    const at::Tensor padding = at::full(shape, options.pad_index, tensor.options());
    return options.pad_first ? at::cat({padding, tensor}, dim) : at::cat({tensor, padding}, dim);
  });
}

Pytree split_between_processes(const Pytree& value, const Share& share) {
  if (share.size == 1) return value;
  const Pytree::Mapping* mapping = value.mapping();
  if (mapping == nullptr) return share_of(value, Cut(length_of(value), share));
  check_lengths(*mapping);
  Pytree::Mapping parts;
  for (const auto& [key, item] : *mapping) parts.emplace_back(key, share_of(item, Cut(length_of(item), share)));
  return {std::move(parts)};
}

Pytree gather_for_metrics(ProcessGroup& group, const Pytree& value, const EpochEnd& end, const char* site) {
  const Pytree all = gather(group, value, site);
  if (!is_cut_off(end)) return all;
  return map_tensors(all, "gather_for_metrics", [&end](const at::Tensor& tensor) {
    return tensor.slice(0, 0, std::min(end.remainder, tensor.size(0)));
  });
}

Node gather_object_for_metrics(ProcessGroup& group, const Node& list, const EpochEnd& end, const char* site) {
  Node all = gather_object(group, list, site);
  const auto kept = static_cast<std::size_t>(end.remainder);
  if (is_cut_off(end) && kept < all.items().size()) all.items().resize(kept);
  return all;
}

void wait_for_everyone(ProcessGroup& group, const char* site) {
  group.begin_all_reduce(at::tensor(0, at::kLong), site)->wait();
}

void main_process_first(ProcessGroup& group, const char* site, const std::function<void()>& body) {
  if (group.rank() != 0) wait_for_everyone(group, site);
  body();
  if (group.rank() == 0) wait_for_everyone(group, site);
}

bool Trigger::check(ProcessGroup& group, const char* site) {
  const at::Tensor flag = at::tensor(set_ ? 1 : 0, at::kLong);
  group.begin_all_reduce(flag, site, ReduceOp::kMax)->wait();
  const bool fired = flag.item<std::int64_t>() != 0;
  if (fired) set_ = false;
  return fired;
}

}  // namespace runner::distributed
