#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// State with this name prefix belongs to one rank: a new rank has none of it. All other state is the same on all
/// ranks.
constexpr const char* kPerRankState = "own.";

/// How a bucket of gradients is exchanged: uncompressed, in a smaller number format, or as a low-rank approximation. A
/// compression's memory (its error and its next start) is its state, separate on each rank.
class CommHook : public core::Stateful {
 public:
  /// Whether the result is the mean of the ranks' gradients; else their sum, to the last bit. Formats overflow and
  /// approximations err depending on the scale of the input.
  virtual bool averages() const = 0;
  /// Starts the exchange of a bucket with complete gradients. `flat` is its memory, `gradients` are the parts of it in
  /// their parameters' shapes. Returns at once. Call for all buckets in the same order each time, then wait().
  virtual void launch(const at::Tensor& flat, const std::vector<at::Tensor>& gradients) = 0;
  /// Blocks until every launched bucket is reduced, with the same bits on each rank.
  virtual void wait() = 0;
};

/// Source  Vogels et al., PowerSGD, arXiv:1905.13727; torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
struct PowerSgdOptions {
  bool batched = false;  ///< a bucket is one square matrix, instead of each gradient a matrix
  std::int64_t rank = 1;
  std::int64_t start_iter = 1000;     ///< earlier exchanges are uncompressed
  double min_compression_rate = 2.0;  ///< a gradient that would shrink by less is exchanged uncompressed
  bool use_error_feedback = true;     ///< error feedback: the approximation error is added to the next gradient
  bool warm_start = true;             ///< warm start: the next Q starts from the last one
  double epsilon = 0.0;               ///< added to each norm of the orthogonalisation
  std::uint32_t seed = 0;
};

struct CommHookOptions {
  enum class Hook { kNone, kFp16, kBf16, kPowerSgd, kBatchedPowerSgd };
  enum class Wrapper { kNone, kFp16, kBf16 };
  Hook hook = Hook::kNone;
  Wrapper wrapper = Wrapper::kNone;  ///< the hook's own number format; nothing without a hook
  PowerSgdOptions power_sgd;

  bool has_state() const { return hook == Hook::kPowerSgd || hook == Hook::kBatchedPowerSgd; }
};

std::unique_ptr<CommHook> make_comm_hook(ProcessGroup& group, const CommHookOptions& options);

}  // namespace runner::distributed
