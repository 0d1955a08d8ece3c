#pragma once

namespace components::kernels {

/// Whether models and losses may take the fused kernels where these fit; the plain operations else. Of the whole
/// process, set before a model is built (`training.fused_kernels`).
bool enabled();
void set_enabled(bool enabled);

}  // namespace components::kernels
