#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct LinearOptions {
  std::int64_t in = 0, out = 0;
  Init weight;
  std::optional<Init> bias;  ///< nothing: no bias
};

/// `y = x W^T + b`, with `NAME.weight` [out, in] and `NAME.bias` [out].
class Linear {
 public:
  Linear(Declared& declared, const std::string& name, const LinearOptions& options);

  at::Tensor forward(const at::Tensor& x) const;  ///< [..., in] to [..., out], by LibTorch's operations
  const Weight& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_.tensor(); }  ///< undefined: there is none

 private:
  Weight weight_, bias_;
};

}  // namespace components::part
