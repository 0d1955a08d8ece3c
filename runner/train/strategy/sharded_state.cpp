#include "runner/train/strategy/sharded_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "runner/core/error.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

class Held final : public core::StateWriter {
 public:
  std::vector<std::pair<std::string, core::Node>> values;
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  void value(std::string_view name, core::Node value) override { values.emplace_back(name, std::move(value)); }
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors.emplace_back(name, tensor); }
};

bool has_sizes_of_rows(const at::Tensor& tensor, const at::Tensor& whole, const ShardPlace& place) {
  return tensor.sizes() == at::IntArrayRef(shard_sizes(whole, place));
}

}  // namespace

at::Tensor shard_of(const at::Tensor& whole, const ShardPlace& place) {
  const at::Tensor rows = whole.dim() == 0 ? whole.view({1}) : whole;
  const Rows mine = rows_of(rows.size(0), place);
  return rows.narrow(0, mine.first, mine.count);
}

core::RowsPlace place_of(const at::Tensor& whole, const ShardPlace& place) {
  return {whole.sizes().vec(), rows_of(whole.dim() == 0 ? 1 : whole.size(0), place).first};
}

std::vector<std::int64_t> shard_sizes(const at::Tensor& whole, const ShardPlace& place) {
  std::vector<std::int64_t> sizes = whole.sizes().vec();
  if (sizes.empty()) sizes.push_back(1);
  sizes.front() = rows_of(sizes.front(), place).count;
  return sizes;
}

/// The whole state, of which a process reads its rows.
class ShardedState::Reader final : public core::StateReader {
 public:
  Reader(const core::StateReader& all, const ShardedState& of) : all_(all), of_(of) {}
  const core::Node& value(std::string_view name) const override { return all_.value(name); }
  bool has(std::string_view name) const override { return all_.has(name); }
  at::Tensor tensor(std::string_view name) const override {
    at::Tensor saved = all_.tensor(name);
    const at::Tensor* whole = of_.whole_of(name);
    if (whole == nullptr || saved.sizes() != whole->sizes()) return saved;
    return shard_of(saved, of_.place_).clone();
  }

 private:
  const core::StateReader& all_;
  const ShardedState& of_;
};

ShardedState::ShardedState(core::Stateful& part, const components::NamedTensors& wholes,
                           distributed::ProcessGroup& copy, const ShardPlace& place, bool saves)
    : part_(part), copy_(copy), place_(place), saves_(saves) {
  for (const components::NamedTensor& whole : wholes) wholes_.emplace(whole.name, whole.tensor);
}

const at::Tensor* ShardedState::whole_of(std::string_view name) const {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto found = wholes_.find(name.substr(dot + 1));
  return found == wholes_.end() ? nullptr : &found->second;
}

// One tensor after the other, so that no process but the first holds more than its own.
void ShardedState::gather() {
  Held own;
  part_.save_state(own);
  const bool is_first = place_.index == 0;
  release();
  is_gathered_ = true;
  if (is_first) values_ = std::move(own.values);
  for (const auto& [name, tensor] : own.tensors) {
    const at::Tensor* whole = whole_of(name);
    const bool is_sharded = whole != nullptr && has_sizes_of_rows(tensor, *whole, place_);
    if (!is_first) {
      if (is_sharded && tensor.numel() > 0) copy_.send(tensor.detach().contiguous(), 0, "the optimizer's state");
      continue;
    }
    if (!is_sharded) {
      tensors_.emplace_back(name, tensor);
      continue;
    }
    const at::Tensor all = at::empty(whole->sizes(), tensor.options());
    shard_of(all, place_).copy_(tensor);
    for (int rank = 1; rank < place_.count; ++rank) {
      const at::Tensor rows = shard_of(all, {rank, place_.count});  // contiguous, as rows are
      if (rows.numel() > 0) copy_.receive(rows, rank, "the optimizer's state");
    }
    tensors_.emplace_back(name, all);
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
  const bool is_first = place_.index == 0;
  for (auto& [name, value] : own.values) {
    if (is_first) writer.value(name, std::move(value));
  }
  for (const auto& [name, tensor] : own.tensors) {
    const at::Tensor* whole = whole_of(name);
    if (whole != nullptr && has_sizes_of_rows(tensor, *whole, place_)) {
      writer.rows(name, tensor, place_of(*whole, place_));
    } else if (is_first) {
      writer.tensor(name, tensor);
    }
  }
}

void ShardedState::load_state(const core::StateReader& reader) { part_.load_state(Reader(reader, *this)); }

}  // namespace runner::train
