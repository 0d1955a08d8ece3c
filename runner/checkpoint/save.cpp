#include "components/tensor/tensors.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/snapshot.h"

namespace runner::checkpoint {
namespace {

using components::NamedTensor;

constexpr std::int64_t kOverheadBytes = 64 << 10;      // trainer.json, the manifest, folders
constexpr std::int64_t kOverheadBytesPerTensor = 256;  // its line in the header
constexpr std::int64_t kGeneratorBytes = 5056;         // mt19937's state as LibTorch returns it

}  // namespace

std::string save(const TrainState& state, const SaveOptions& options) {
  const Snapshot snapshot(state, options.shard_bytes_max);
  const auto draft = snapshot.begin(options);
  snapshot.write(*draft);
  return snapshot.commit(*draft, options);
}

std::int64_t estimate_bytes(const components::model::Model& model, const SavedBeside& beside, const BaseWeights* base) {
  std::int64_t bytes = kOverheadBytes + kGeneratorBytes;
  for (const NamedTensor& named : model.parameters()) {
    if (base != nullptr && base->holds(named.name)) continue;
    bytes += static_cast<std::int64_t>(named.tensor.nbytes()) + kOverheadBytesPerTensor;
    if (!named.tensor.requires_grad()) continue;
    const SavedState state = beside(named.tensor);
    bytes += state.bytes + state.tensors * kOverheadBytesPerTensor;
  }
  for (const NamedTensor& named : model.buffers()) {
    bytes += static_cast<std::int64_t>(named.tensor.nbytes()) + kOverheadBytesPerTensor;
  }
  return bytes;
}

}  // namespace runner::checkpoint
