#pragma once

#include <cstdint>
#include <vector>

#include "runner/core/state.h"

namespace components {
struct NamedTensor;
}

namespace runner::train {

/// Keeps the gradients of float16 from vanishing: the loss is multiplied by a scale, the gradients are divided by it,
/// and the scale follows what float16 can hold.
///
/// State   what torch.amp.GradScaler.state_dict() has, under the same names; nothing when it is not enabled.
/// Source  torch.amp.GradScaler; golden topic grad_scaler
class GradScaler final : public core::Stateful {
 public:
  struct Options {
    bool enabled = false;
    double init_scale = 65536.0, growth_factor = 2.0, backoff_factor = 0.5;
    std::int64_t growth_interval = 2000;
  };

  explicit GradScaler(const Options& options);

  bool enabled() const { return options_.enabled; }
  /// What the loss is to be multiplied by; 1 when not enabled.
  double scale() const { return options_.enabled ? static_cast<double>(scale_) : 1.0; }
  /// Steps without an overflow since the scale moved last.
  std::int64_t growth_tracker() const { return growth_tracker_; }

  /// Divides the gradients by the scale, in place, and says whether all of them were finite before. Those that were
  /// not are divided, too. Not enabled it leaves them alone and says yes.
  bool unscale(const std::vector<components::NamedTensor>& parameters) const;

  /// After each step, and after each one that was left out because unscale() said no.
  void update(bool overflowed);

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  Options options_;
  float scale_;
  std::int64_t growth_tracker_ = 0;
};

}  // namespace runner::train
