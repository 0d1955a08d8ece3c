#pragma once

namespace torch {
class Library;
}

namespace tests::accelerator {

/// The kernels that LibTorch has for GPUs, of attention over ragged rows, by plain operations of the CPU: flash in 16
/// bits, and the efficient one. They refuse what a GPU refuses, and keep nothing but logarithms of sums.
void register_attention(torch::Library& aten);

}  // namespace tests::accelerator
