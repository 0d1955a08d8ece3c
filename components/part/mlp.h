#pragma once

#include <cstdint>
#include <string>

#include "components/part/activation.h"
#include "components/part/linear.h"
#include "runner/core/tensor_fwd.h"

namespace components::part {

struct MlpOptions {
  std::int64_t width = 0, hidden = 0;
  Activation activation = Activation::kGeluTanh;
  bool gated = false;  ///< `f(gate) * up`: SwiGLU, GeGLU (Shazeer 2020); else `f(up)`
  bool bias = true;
  Init in, out;           ///< of the two weights; biases begin with 0
  const char* fc = "fc";  ///< what the first layer is called
};

/// `NAME_fc` [hidden or 2 hidden, width], whose first half is the gate where there is one, and `NAME_proj`
/// [width, hidden].
class Mlp {
 public:
  Mlp(Declared& declared, const std::string& name, const MlpOptions& options);

  at::Tensor forward(const at::Tensor& x) const;
  at::Tensor activated(const at::Tensor& hidden) const;  ///< of what NAME_fc gives: what NAME_proj reads
  const MlpOptions& options() const { return options_; }
  const Linear& fc() const { return fc_; }
  const Linear& proj() const { return proj_; }
  Linear& fc() { return fc_; }
  Linear& proj() { return proj_; }

 private:
  MlpOptions options_;
  Linear fc_, proj_;
};

}  // namespace components::part
