#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"

namespace components {
struct NamedTensor;
}

namespace runner::train {

/// Lets a float32 optimizer update bfloat16 weights (`precision.mode: bf16-true`): they are widened for one step, and
/// the result is rounded. The optimizer state is always float32.
///
/// Stochastic rounding  up or down with the probability that makes the mean exact, by 16 bits that depend on
///                      seed, step, parameter and element only, not on the number of threads.
/// State                the number of steps rounded so far.
class Bf16MasterWeights final : public core::Stateful {
 public:
  struct Options {
    bool stochastic = true;
    std::uint64_t seed = 0;
  };

  /// The bfloat16 ones among `parameters` are rounded; the others are passed through.
  Bf16MasterWeights(const std::vector<components::NamedTensor>& parameters, const Options& options);
  ~Bf16MasterWeights() override;

  /// The parameters to make the optimizer for: float32 twins of the bfloat16 weights, with their names and shapes. They
  /// have memory between widen() and narrow() only.
  std::vector<components::NamedTensor> for_optimizer() const;

  /// Call before the optimizer's step: copies weights and gradients into the twins.
  void widen();
  /// Call after it: rounds the twins into the weights.
  void narrow();
  /// The same without a step: rounds to nearest, so an unchanged weight stays that weight.
  void narrow_to_nearest();

  void save_state(core::StateWriter& writer) const override;
  void load_state(const core::StateReader& reader) override;

 private:
  struct Twins;
  Options options_;
  std::unique_ptr<Twins> twins_;
  std::int64_t steps_ = 0;
};

/// Four 32-bit numbers from a counter and a key.
///
/// Source  Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (Philox4x32-10)
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// Rounds `source` float32 to `target` bfloat16, both contiguous and of one size. `stream` separates draws that share a
/// seed.
void round_stochastically(const at::Tensor& source, const at::Tensor& target, std::uint64_t seed, std::uint64_t stream,
                          std::uint32_t part);

}  // namespace runner::train
