#include "runner/train/strategy/sharded_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

using core::Node;

class Held final : public core::StateWriter {
 public:
  std::vector<std::pair<std::string, core::Node>> values;
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  void value(std::string_view name, core::Node value) override { values.emplace_back(name, std::move(value)); }
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors.emplace_back(name, tensor); }
};

/// What a process that receives a tensor has to know of it.
Node description_of(const std::string& name, const at::Tensor& tensor) {
  Node sizes = Node::sequence();
  for (const std::int64_t size : tensor.sizes()) sizes.items().push_back(Node::integer(size));
  Node one = Node::mapping();
  one.set("name", Node::string(name));
  one.set("type", Node::integer(static_cast<std::int64_t>(tensor.scalar_type())));
  one.set("on_cpu", Node::boolean(tensor.is_cpu()));
  one.set("sizes", std::move(sizes));
  return one;
}

/// `elsewhere`: a device for those that are not on the CPU.
at::Tensor tensor_like(const Node& description, const at::Device& elsewhere) {
  std::vector<std::int64_t> sizes;
  for (const Node& size : description.find("sizes")->items()) sizes.push_back(size.as_integer());
  const auto type = static_cast<at::ScalarType>(description.find("type")->as_integer());
  const at::Device device = description.find("on_cpu")->as_bool() ? at::Device(at::kCPU) : elsewhere;
  return at::empty(sizes, at::TensorOptions(type).device(device));
}

}  // namespace

/// The whole state, of which a process reads its rows.
class ShardedState::Reader final : public core::StateReader {
 public:
  Reader(const core::StateReader& all, const ShardedState& of) : all_(all), of_(of) {}
  const core::Node& value(std::string_view name) const override { return all_.value(name); }
  bool has(std::string_view name) const override { return all_.has(name); }
  at::Tensor tensor(std::string_view name) const override {
    at::Tensor saved = all_.tensor(name);
    const Whole* whole = of_.whole_of(name);
    if (whole == nullptr) return saved;
    if (saved.sizes() == whole->tensor.sizes()) return shard_of(saved, whole->place).clone();
    const std::int64_t blocks = block_count(whole->tensor, whole->place);
    if (blocks == 0 || saved.dim() != 1 || saved.size(0) != blocks) return saved;
    const Rows mine = blocks_of(whole->tensor, whole->place);
    return saved.narrow(0, mine.first, mine.count).clone();
  }

 private:
  const core::StateReader& all_;
  const ShardedState& of_;
};

ShardedState::ShardedState(core::Stateful& part, const components::NamedTensors& wholes,
                           const std::vector<ShardPlace>& places, distributed::ProcessGroup& copy, bool saves,
                           std::function<void()> before_load)
    : part_(part), copy_(copy), saves_(saves), before_load_(std::move(before_load)) {
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    wholes_.emplace(wholes[i].name, Whole{wholes[i].tensor, places[i]});
    has_owners_ = has_owners_ || places[i].owner.has_value();
  }
}

const ShardedState::Whole* ShardedState::whole_of(std::string_view name) const {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto found = wholes_.find(name.substr(dot + 1));
  return found == wholes_.end() ? nullptr : &found->second;
}

bool ShardedState::is_first() const { return copy_.rank() == 0; }

// One tensor after the other, so that no process but the first holds more than its own. By name: the optimizer's order
// follows the sizes of the parts.
void ShardedState::gather() {
  Held own;
  part_.save_state(own);
  std::sort(own.tensors.begin(), own.tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  release();
  is_gathered_ = true;
  if (is_first()) values_ = std::move(own.values);
  std::vector<std::pair<std::string, at::Tensor>> owned;
  for (const auto& [name, tensor] : own.tensors) {
    const Whole* whole = whole_of(name);
    if (whole != nullptr && whole->place.replicated) {
      const bool is_alike = whole->has_rows_like(tensor);
      if (is_first()) tensors_.emplace_back(name, is_alike ? tensor.reshape(whole->tensor.sizes()) : tensor);
    } else if (whole != nullptr && whole->place.owner) {
      // A parameter without dimensions is one row of its shard.
      const bool is_alike = whole->has_rows_like(tensor);
      if (*whole->place.owner == whole->place.index)
        owned.emplace_back(name, is_alike ? tensor.reshape(whole->tensor.sizes()) : tensor);
    } else if (whole != nullptr && whole->has_rows_like(tensor)) {
      gather_parts(name, tensor, whole->tensor.sizes().vec(), [&](const at::Tensor& all, int process) {
        return shard_of(all, whole->place.of(process));  // contiguous, as rows are
      });
    } else if (whole != nullptr && whole->has_blocks_like(tensor)) {
      gather_parts(name, tensor, {block_count(whole->tensor, whole->place)}, [&](const at::Tensor& all, int process) {
        const Rows theirs = blocks_of(whole->tensor, whole->place.of(process));
        return all.narrow(0, theirs.first, theirs.count);
      });
    } else if (is_first()) {
      tensors_.emplace_back(name, tensor);
    }
  }
  if (has_owners_) gather_owned(owned);
}

void ShardedState::gather_parts(const std::string& name, const at::Tensor& tensor,
                                const std::vector<std::int64_t>& sizes,
                                const std::function<at::Tensor(const at::Tensor& whole, int process)>& part_of) {
  if (!is_first()) {
    if (tensor.numel() > 0) copy_.send(tensor.detach().contiguous(), 0, "the state");
    return;
  }
  const at::Tensor all = at::empty(sizes, tensor.options());
  part_of(all, 0).copy_(tensor);
  for (int rank = 1; rank < copy_.size(); ++rank) {
    const at::Tensor part = part_of(all, rank);
    if (part.numel() > 0) copy_.receive(part, rank, "the state");
  }
  tensors_.emplace_back(name, all);
}

/// Of parameters with an owner, who alone knows what state they have.
void ShardedState::gather_owned(const std::vector<std::pair<std::string, at::Tensor>>& own) {
  Node told = Node::sequence();
  for (const auto& [name, tensor] : own) {
    if (is_first()) {
      tensors_.emplace_back(name, tensor);
    } else {
      told.items().push_back(description_of(name, tensor));
    }
  }
  const std::vector<std::string> texts = copy_.all_gather(core::to_json(told, -1), "the tensors of the state");
  if (!is_first()) {
    for (const auto& [name, tensor] : own)
      if (tensor.numel() > 0) copy_.send(tensor.detach().contiguous(), 0, "the state");
    return;
  }
  for (int rank = 1; rank < copy_.size(); ++rank) {
    const Node of_rank = core::parse_json(texts[static_cast<std::size_t>(rank)]).value();
    for (const Node& one : of_rank.items()) {
      const std::string name = one.find("name")->as_string();
      const at::Tensor tensor = tensor_like(one, whole_of(name)->tensor.device());
      if (tensor.numel() > 0) copy_.receive(tensor, rank, "the state");
      tensors_.emplace_back(name, tensor);
    }
  }
}

void ShardedState::release() {
  is_gathered_ = false;
  values_.clear();
  tensors_.clear();
}

void ShardedState::save_state(core::StateWriter& writer) const {
  if (!is_gathered_) return save_rows(writer);
  for (const auto& [name, value] : values_) writer.value(name, value);
  for (const auto& [name, tensor] : tensors_) writer.tensor(name, tensor);
}

void ShardedState::save_rows(core::StateWriter& writer) const {
  if (!saves_) return;
  Held own;
  part_.save_state(own);
  for (auto& [name, value] : own.values) {
    if (is_first()) writer.value(name, std::move(value));
  }
  for (const auto& [name, tensor] : own.tensors) {
    const Whole* whole = whole_of(name);
    const bool is_elsewhere = whole != nullptr && whole->place.owner && *whole->place.owner != whole->place.index;
    if (is_elsewhere || (whole != nullptr && !whole->place.counts())) continue;
    if (whole != nullptr && whole->has_rows_like(tensor)) {
      writer.rows(name, tensor, place_of(whole->tensor, whole->place));
    } else if (whole != nullptr && whole->has_blocks_like(tensor)) {
      writer.rows(name, tensor,
                  {{block_count(whole->tensor, whole->place)}, blocks_of(whole->tensor, whole->place).first});
    } else if (whole != nullptr && whole->place.owner) {
      writer.rows(name, tensor, {tensor.sizes().vec(), 0});
    } else if (is_first()) {
      writer.tensor(name, tensor);
    }
  }
}

void ShardedState::load_state(const core::StateReader& reader) {
  before_load_();
  part_.load_state(Reader(reader, *this));
}

}  // namespace runner::train
