#pragma once

#include <cstdint>
#include <vector>

#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace runner::train {

/// Keeps float16 gradients from underflowing: multiplies the loss by a scale, divides the gradients by it, and adapts
/// the scale to the range of float16.
///
/// State   what torch.amp.GradScaler.state_dict() has, under the same names, and `_hysteresis_tracker` where hysteresis
///         is above 1; nothing when disabled.
/// Source  torch.amp.GradScaler; golden topic grad_scaler. DeepSpeed, deepspeed/runtime/fp16/loss_scaler.py:
/// hysteresis,
///         the smallest and the fixed scale
class GradScaler final : public core::Stateful {
 public:
  struct Options {
    bool enabled = false;
    double init_scale = 65536.0, growth_factor = 2.0, backoff_factor = 0.5;
    std::int64_t growth_interval = 2000;
    std::int64_t hysteresis = 1;  ///< the overflow at which the scale falls
    double min_scale = 0;         ///< the scale falls no further; 0: it falls by any overflow
    bool adapts = true;           ///< false: the scale stays `init_scale`
  };

  explicit GradScaler(const Options& options);

  bool enabled() const { return options_.enabled; }
  /// Factor for the loss; 1 when disabled.
  double scale() const { return options_.enabled ? static_cast<double>(scale_) : 1.0; }

  /// Divides the gradients by the scale, in place, and returns whether all were finite before; all are divided either
  /// way. When disabled, does nothing and returns true.
  bool unscale(const std::vector<components::NamedTensor>& parameters) const;
  /// The same without a wait for the gradients' device: a float32 scalar there, not 0 if one was not finite. Undefined
  /// when disabled, or without gradients.
  at::Tensor unscale_on_device(const std::vector<components::NamedTensor>& parameters) const;

  /// Call after each step, and after each one skipped because unscale() returned false.
  void update(bool overflowed);
  /// Whether the last update was to lower a scale that cannot fall: nothing helps against such an overflow.
  bool is_stuck() const { return is_stuck_; }

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  Options options_;
  float scale_;
  std::int64_t growth_tracker_ = 0;  // steps without an overflow since the scale last changed
  std::int64_t hysteresis_tracker_;  // overflows until the scale falls
  bool is_stuck_ = false;
};

}  // namespace runner::train
