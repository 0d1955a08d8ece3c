#pragma once

namespace components {

/// Whether models and losses may take fused kernels where these fit; the plain operations else. Of the whole process,
/// set before the first forward pass (`training.fused_kernels`).
bool fused_kernels();
void set_fused_kernels(bool allowed);

}  // namespace components
