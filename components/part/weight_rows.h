#pragma once

#include <functional>
#include <utility>

#include "components/part/weight.h"
#include "components/tensor/tensors.h"

namespace components::part {

/// The parameters of a process that keeps its rows of them alone: each is made whole by another maker, which draws the
/// same numbers so, and has no memory once its rows are copied. Buffers stay whole.
class WeightRows final : public WeightMaker {
 public:
  using Rows = std::function<at::Tensor(const at::Tensor& whole)>;
  /// `rows`: those to keep, in the memory of the whole. Both outlive this.
  WeightRows(WeightMaker& whole, const Rows& rows) : whole_(whole), rows_(rows) {}
  at::Tensor make(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;
  at::Tensor make_buffer(const std::string& name, std::span<const std::int64_t> shape, const Init& init) override;

  /// By the parameters' names.
  NamedTensors take() { return std::move(kept_); }

 private:
  WeightMaker& whole_;
  const Rows& rows_;
  NamedTensors kept_;
};

}  // namespace components::part
