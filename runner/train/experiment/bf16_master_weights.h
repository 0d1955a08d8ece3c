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

/// How an optimizer of float32 moves weights that are kept in bfloat16 (`precision.mode: bf16-true`): for the length of
/// one step they are widened, and what comes out is rounded. The optimizer keeps its own state in float32 throughout.
///
/// Stochastic rounding  up or down with the probability that makes the mean right, by 16 bits that are a function of
///                      seed, step, parameter and element alone: the number of threads changes nothing.
/// State                the number of steps rounded so far.
class Bf16MasterWeights final : public core::Stateful {
 public:
  struct Options {
    bool stochastic = true;
    std::uint64_t seed = 0;
  };

  /// The bfloat16 ones of `parameters` are rounded; the others are passed on as they are.
  Bf16MasterWeights(const std::vector<components::NamedTensor>& parameters, const Options& options);
  ~Bf16MasterWeights() override;

  /// What the optimizer is to be made for: float32 twins of the bfloat16 weights, of their names and shapes. They have
  /// memory between widen() and narrow() only.
  std::vector<components::NamedTensor> for_optimizer() const;

  /// Before the optimizer's step: the twins take the weights and their gradients.
  void widen();
  /// After it: the weights take the twins' values, rounded.
  void narrow();
  /// The same without a step: to the nearest, so that what comes from a bfloat16 weight is that weight again.
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

/// `source` float32 to `target` bfloat16, both contiguous and of one size. `stream` tells draws apart that share a
/// seed.
void round_stochastically(const at::Tensor& source, const at::Tensor& target, std::uint64_t seed, std::uint64_t stream,
                          std::uint32_t part);

}  // namespace runner::train
