#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runner/core/state.h"
#include "runner/core/tensor_fwd.h"
#include "runner/distributed/process_group.h"

namespace runner::distributed {

/// Names of state that begin so are of one rank alone: one that was not there before has none of it. Everything else is
/// the same on all ranks.
constexpr const char* kOwnState = "own.";

/// How a bucket of gradients travels: whole, in a smaller number format, or as an approximation of low rank. What a
/// compression has to remember (what it left out, and where it looks next) is its state, of each rank its own.
class CommHook : public core::Stateful {
 public:
  /// Whether what comes back is the mean of the ranks' gradients; else their sum, to the last bit. A number format
  /// overflows, and an approximation errs, by what it is given.
  virtual bool takes_mean() const = 0;
  /// All gradients of a bucket are there. `flat` is its memory, `gradients` are the parts of it in their parameters'
  /// shapes. Returns at once. To be called for all buckets in the same order each time, then come_back().
  virtual void set_out(const at::Tensor& flat, const std::vector<at::Tensor>& gradients) = 0;
  /// Blocks until every bucket that set out holds what all ranks have together, the same bits on each of them.
  virtual void come_back() = 0;
};

/// Source  Vogels et al., PowerSGD, arXiv:1905.13727; torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
struct PowerSgdOptions {
  bool batched = false;  ///< a bucket is one square matrix, instead of each gradient a matrix
  std::int64_t rank = 1;
  std::int64_t start_iter = 1000;     ///< exchanges before it are whole
  double min_compression_rate = 2.0;  ///< a gradient that would not shrink by more is exchanged whole
  bool use_error_feedback = true;     ///< what an approximation left out is added to the next gradient
  bool warm_start = true;             ///< the next search begins where the last one ended
  double epsilon = 0.0;               ///< added to each norm of the orthogonalisation
  std::uint32_t seed = 0;
};

struct ExchangeOptions {
  enum class Hook { kNone, kFp16, kBf16, kPowerSgd, kBatchedPowerSgd };
  enum class Wrapper { kNone, kFp16, kBf16 };
  Hook hook = Hook::kNone;
  Wrapper wrapper = Wrapper::kNone;  ///< the number format that the hook itself computes in; nothing without a hook
  PowerSgdOptions power_sgd;

  bool has_state() const { return hook == Hook::kPowerSgd || hook == Hook::kBatchedPowerSgd; }
};

std::unique_ptr<CommHook> make_exchange(ProcessGroup& group, const ExchangeOptions& options);

}  // namespace runner::distributed
