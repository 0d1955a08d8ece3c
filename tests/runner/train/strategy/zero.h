#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/distributed/process_group.h"
#include "runner/train/strategy/ddp.h"

namespace tests {

namespace core = runner::core;
namespace train = runner::train;

/// Optimizer states split over the ranks by block: each rank steps the blocks that it owns, and the others get a block
/// from its owner right before they use it.
///
/// Source  Rajbhandari et al., ZeRO, arXiv:1910.02054, stage 1
class Zero final : public train::Ddp {
 public:
  /// What happened, for the test, of which it lives no longer.
  struct Log {
    std::string hooks;                    ///< of the last step: f and F before and after forward, b and B backward
    std::set<std::string> owned;          ///< parameters that this rank steps
    std::size_t gathered_in_forward = 0;  ///< units
  };

  Zero(runner::distributed::ProcessGroup& ranks, Log& log) : ranks_(ranks), log_(log) {}

  /// A block becomes one piece of memory, to travel at once.
  void attach(const std::vector<train::Unit>& units) override {
    Ddp::attach(units);
    const at::NoGradGuard no_grad;
    for (const auto& unit : units) {
      const bool mine = static_cast<int>(flat_.size()) % ranks_.size() == ranks_.rank();
      std::vector<at::Tensor> parts = {at::zeros({0})};
      for (const auto& parameter : unit.parameters) {
        if (mine) log_.owned.insert(parameter.name);
        parts.push_back(parameter.tensor.detach().reshape({-1}));
      }
      flat_.push_back(at::cat(parts));
      std::int64_t begin = 0;
      for (const auto& parameter : unit.parameters) {
        const std::int64_t count = parameter.tensor.numel();
        at::Tensor(parameter.tensor).set_data(flat_.back().narrow(0, begin, count).view(parameter.tensor.sizes()));
        begin += count;
      }
    }
  }
  bool wants_unit_hooks() const override { return true; }
  bool steps(std::size_t parameter) const override { return log_.owned.contains((*parameters_)[parameter].name); }

  void begin_step(const train::StepPlan& plan) override {
    log_.hooks.clear();
    Ddp::begin_step(plan);
  }
  void before_unit_forward(std::size_t unit) override {
    note("f", unit);
    if (gather(unit)) ++log_.gathered_in_forward;
  }
  void after_unit_forward(std::size_t unit) override { note("F", unit); }
  void before_unit_backward(std::size_t unit) override { note("b", unit); }
  void after_unit_backward(std::size_t unit) override { note("B", unit); }

  /// A rank without a pass takes part in what the passes of the others gather.
  train::RankNotes finish(const train::PassesEnd& end) override {
    sync_weights();
    return Ddp::finish(end);
  }
  double norm() const override {
    double squares = 0;
    for (const auto& parameter : *parameters_) {
      if (!log_.owned.contains(parameter.name) || !parameter.tensor.grad().defined()) continue;
      squares += parameter.tensor.grad().square().sum().item<double>();
    }
    const at::Tensor all = at::scalar_tensor(squares, at::kDouble);
    ranks_.begin_all_reduce(all, "norm")->wait();
    return std::sqrt(all.item<double>());
  }
  void end_step(std::int64_t) override {
    for (std::size_t unit = 0; unit < flat_.size(); ++unit) {
      if (flat_[unit].numel() > 0) stale_.insert(unit);
    }
  }
  void sync_weights() override {
    for (std::size_t unit = 0; unit < flat_.size(); ++unit) gather(unit);
  }
  void on_weights_loaded() override { stale_.clear(); }
  std::vector<train::RankState> rank_states() override { return {{"zero", &shard_}}; }

 private:
  /// The optimizer's state on one rank, with zeros where another rank owns the parameter: names are alike on all ranks.
  class Shard final : public core::Stateful {
   public:
    explicit Shard(Zero& zero) : zero_(zero) {}
    void save_state(core::StateWriter& writer) const override {
      Held held;
      zero_.experiment_->optimizer->save_state(held);
      std::set<std::string> kinds;
      for (const auto& [name, tensor] : held.tensors) kinds.insert(name.substr(0, name.find('.') + 1));
      for (const std::string& kind : kinds) {
        for (const auto& parameter : *zero_.parameters_) {
          const auto own = held.tensors.find(kind + parameter.name);
          const bool here = own != held.tensors.end();
          writer.tensor(kind + parameter.name, here ? own->second : at::zeros(parameter.tensor.sizes()));
        }
      }
      for (auto& [name, value] : held.values) writer.value(name, std::move(value));
    }
    void load_state(const core::StateReader& reader) override { zero_.experiment_->optimizer->load_state(reader); }

   private:
    struct Held final : core::StateWriter {
      void value(std::string_view name, core::Node value) override { values[std::string(name)] = std::move(value); }
      void tensor(std::string_view name, const at::Tensor& tensor) override { tensors[std::string(name)] = tensor; }
      std::map<std::string, core::Node> values;
      std::map<std::string, at::Tensor> tensors;
    };
    Zero& zero_;
  };

  void note(const char* what, std::size_t unit) { log_.hooks += what + std::to_string(unit) + " "; }
  bool gather(std::size_t unit) {
    if (stale_.erase(unit) == 0) return false;
    ranks_.broadcast(flat_[unit], static_cast<int>(unit) % ranks_.size(), "unit");
    return true;
  }

  runner::distributed::ProcessGroup& ranks_;
  Log& log_;
  std::vector<at::Tensor> flat_;  // by unit
  std::set<std::size_t> stale_;   // units that their owners have moved
  Shard shard_{*this};
};

}  // namespace tests
