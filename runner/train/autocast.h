#pragma once

namespace runner::train {

/// bf16-mixed on the CPU while it lives: matrix products in bfloat16, reductions and losses in float32.
///
/// Source  torch.autocast("cpu", dtype=torch.bfloat16)
class Autocast {
 public:
  explicit Autocast(bool bf16);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool bf16_;
};

}  // namespace runner::train
