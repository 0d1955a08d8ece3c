#pragma once

#include <cstdint>
#include <string>

#include "components/part/weight.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct NormOptions {
  enum class Kind { kLayer, kRms, kRmsPlusOne };
  std::int64_t width = 0;
  Kind kind = Kind::kLayer;
  double eps = 1e-5;
  bool bias = true;  ///< of a layer norm only
};

/// A norm over the last dimension: layer norm (Ba et al. 2016), or root mean square norm (Zhang & Sennrich 2019) in
/// float32 whatever x is. `NAME.weight` and `NAME.bias` begin with 1 and 0; what is multiplied with kRmsPlusOne, as in
/// Gemma, is 1 + weight, which begins with 0.
class Norm {
 public:
  Norm(Declared& declared, const std::string& name, const NormOptions& options);

  at::Tensor forward(const at::Tensor& x) const;
  const NormOptions& options() const { return options_; }
  /// What is multiplied with: of kRmsPlusOne 1 + weight in float32, through which a gradient passes.
  at::Tensor weight() const;
  const at::Tensor& bias() const { return bias_.tensor(); }  ///< undefined: there is none

 private:
  NormOptions options_;
  Weight weight_, bias_;
};

}  // namespace components::part
