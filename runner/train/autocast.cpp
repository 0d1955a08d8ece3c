#include "runner/train/autocast.h"

#include <ATen/autocast_mode.h>

namespace runner::train {

Autocast::Autocast(bool bf16) : bf16_(bf16) {
  if (!bf16_) return;
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (!bf16_) return;
  // The cache holds bf16 copies of the weights, which the next optimizer step makes stale.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

}  // namespace runner::train
