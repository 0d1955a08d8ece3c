#include "runner/train/save/rank_states.h"

#include <ATen/core/Tensor.h>

#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/log.h"
#include "runner/distributed/comm_hook.h"
#include "runner/distributed/process_group.h"

namespace runner::train {
namespace {

using core::Node;

std::string prefix_of(std::size_t rank) { return std::to_string(rank) + "."; }

/// A rank's saved state; for a new rank without the parts that belong to one rank only.
class OwnReader final : public core::StateReader {
 public:
  OwnReader(const core::StateReader& all, std::size_t rank, bool newcomer)
      : all_(all), prefix_(prefix_of(rank)), newcomer_(newcomer) {}
  const Node& value(std::string_view name) const override { return all_.value(prefix_ + std::string(name)); }
  bool has(std::string_view name) const override {
    return !(newcomer_ && name.starts_with(distributed::kPerRankState)) && all_.has(prefix_ + std::string(name));
  }
  at::Tensor tensor(std::string_view name) const override { return all_.tensor(prefix_ + std::string(name)); }

 private:
  const core::StateReader& all_;
  std::string prefix_;
  bool newcomer_;
};

}  // namespace

struct RankStates::Held final : public core::StateWriter {
  std::vector<std::pair<std::string, Node>> values;
  std::vector<std::pair<std::string, at::Tensor>> tensors;

  void value(std::string_view name, Node value) override { values.emplace_back(name, std::move(value)); }
  void tensor(std::string_view name, const at::Tensor& tensor) override { tensors.emplace_back(name, tensor); }
};

RankStates::RankStates(distributed::ProcessGroup& ranks, core::Stateful& part) : ranks_(ranks), part_(part) {}
RankStates::~RankStates() = default;

void RankStates::gather(const char* site) {
  Held own;
  part_.save_state(own);
  Node values = Node::mapping();
  for (auto& [name, value] : own.values) values.set(name, std::move(value));
  const auto all = ranks_.all_gather(core::to_json(values, -1), site);
  const bool first = ranks_.rank() == 0;
  held_.clear();
  held_.resize(first ? all.size() : 0);
  for (std::size_t rank = 0; rank < held_.size(); ++rank) {
    const Node theirs = core::parse_json(all[rank]).value();
    for (const Node::Entry& entry : theirs.entries()) held_[rank].value(entry.key, entry.value);
  }
  // Ranks with the same history have tensors of the same names and shapes.
  for (const auto& [name, tensor] : own.tensors) {
    const std::vector<at::Tensor> theirs = ranks_.all_gather(tensor.detach().contiguous(), site);
    for (std::size_t rank = 0; rank < held_.size(); ++rank) held_[rank].tensor(name, theirs[rank]);
  }
}

void RankStates::save_state(core::StateWriter& writer) const {
  for (std::size_t rank = 0; rank < held_.size(); ++rank) {
    for (const auto& [name, value] : held_[rank].values) writer.value(prefix_of(rank) + name, value);
    for (const auto& [name, tensor] : held_[rank].tensors) writer.tensor(prefix_of(rank) + name, tensor);
  }
  writer.value("ranks", Node::integer(ranks_.size()));
}

void RankStates::load_state(const core::StateReader& reader) {
  const auto rank = ranks_.rank();
  const bool newcomer = rank >= reader.value("ranks").as_integer();
  if (newcomer) {
    core::log_warning("the checkpoint was saved by fewer processes: process " + std::to_string(rank) +
                      " starts from the state of process 0");
  }
  part_.load_state(OwnReader(reader, newcomer ? 0 : static_cast<std::size_t>(rank), newcomer));
}

}  // namespace runner::train
