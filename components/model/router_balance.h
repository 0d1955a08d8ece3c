#pragma once

#include <cstdint>
#include <optional>

#include "components/model/stack.h"
#include "components/tensor/tensor_spec.h"

namespace components {
class TensorMap;
}
namespace components::part {
struct Routing;
}

namespace components::model {

/// What a block with a mixture adds to the balance of the experts, which is of all blocks together: sums that go from
/// one to the next, and from the last one kAuxiliaryLoss.
class RouterBalance {
 public:
  /// `layer` has a mixture. `has_padding`: whether a batch holds a mask, whose padding does not count.
  RouterBalance(const StackOptions& options, std::int64_t layer, bool has_padding);

  std::optional<TensorSpec> input() const;  ///< what the block reads; nothing of the first one
  TensorSpec output() const;

  void add(const part::Routing& routing, TensorMap& activations) const;

 private:
  std::int64_t experts_, chosen_;
  double factor_;
  bool is_first_, is_last_, has_padding_;
};

}  // namespace components::model
