#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runner/core/platform/connect_nccl.h"
#include "runner/core/rank_info.h"
#include "runner/core/tensor_fwd.h"

namespace runner::distributed {

/// A collective in flight. It owns its tensor until wait() returns.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;  ///< blocks; RunError as the group's
};

enum class ReduceOp { kSum, kMax };

/// The processes that train one recipe together, as seen by one of them. All make the same calls in the same order.
/// `site` names the purpose in a word or two, for messages.
///
/// Errors  RunError with core::kExitPeerLost when another rank is dead, does not call within the timeout or
/// fails, or NCCL does:
///         it names the missing ranks and where each of the others is. The group is unusable afterwards. An error of
///         this rank's own GPU is thrown as it is.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Exchanges tensors of GPUs over NCCL from now on; until then they pass through the memory of the CPU. Call it on
  /// all ranks, each with a GPU of its own, numbered in CUDA's order. Blocks until all are connected.
  virtual void connect_gpus(core::ConnectNccl connect, int gpu) = 0;

  /// Sums `flat` (contiguous, on any device) over all ranks in place, or takes the maximum of each entry; the same bits
  /// on every rank, and the same each time. Returns at once: several may be in flight, and finish in the order they
  /// began.
  virtual std::unique_ptr<Pending> begin_all_reduce(const at::Tensor& flat, const char* site,
                                                    ReduceOp op = ReduceOp::kSum) = 0;
  /// `mine` (contiguous, of the same shape everywhere) of each rank, by rank, on this rank's device. Blocks.
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& mine, const char* site) = 0;
  /// Copies `flat` (contiguous, of the same shape everywhere) from rank `from` to all ranks, in place.
  /// Blocks.
  virtual void broadcast(const at::Tensor& flat, int from, const char* site) = 0;
  /// Sends a part of `in` to each rank and receives one from each: `in_counts[r]` elements go to rank r,
  /// `out_counts[r]` come from it, each at least 1; consecutive, by rank. Both contiguous, of one type, [sum of their
  /// counts]; a rank's count for another is that one's for it. Returns at once, as begin_all_reduce().
  virtual std::unique_ptr<Pending> begin_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                                    const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                                    const char* site) = 0;
  /// Writes `mine` (contiguous, [N], N > 0, the same everywhere) of each rank to `out` [size() * N], by rank. Returns
  /// at once.
  virtual std::unique_ptr<Pending> begin_all_gather(const at::Tensor& out, const at::Tensor& mine,
                                                    const char* site) = 0;
  /// Sends `tensor` (contiguous, not empty) to one rank, which receives it into one of the same shape and type. Both
  /// block; between two ranks they pair in order. With debug they are not compared.
  virtual void send(const at::Tensor& tensor, int to, const char* site) = 0;
  virtual void receive(const at::Tensor& tensor, int from, const char* site) = 0;

  /// The group of some of its ranks, in increasing order, this one among them; their position is the rank in the new
  /// group. Each of them calls it, in the same order as other collectives of theirs, and blocks until all are
  /// connected. `name` is shown in messages, and is another one for each group of the same ranks. Errors name the ranks
  /// of the whole, which is unusable as well after one. The new group must end before this one.
  virtual std::unique_ptr<ProcessGroup> part(const std::vector<int>& ranks, const std::string& name) = 0;
  /// What messages call the ranks beside their number, by rank: `dp_replicate 1, dp_shard 0`.
  virtual void describe_ranks(const std::vector<std::string>& places) = 0;

  /// With ProcessGroupOptions::debug, checks that all ranks are at the same collective: RunError on every rank, naming
  /// the difference. Each collective above does so itself. `shape` is shown.
  virtual void verify_collective(const char* operation, const char* site, const std::string& shape) = 0;
  /// The bytes of each rank, by rank. Blocks. Meant for a few kilobytes.
  std::vector<std::string> all_gather(const std::string& mine, const char* site);
  /// The bytes of rank 0; the others' `bytes` are ignored. Blocks.
  std::string from_rank_0(const std::string& bytes, const char* site);
};

struct ProcessGroupOptions {
  double timeout_s = 1800;  ///< for the rendezvous, and for each collective
  bool debug = false;       ///< collectives first compare themselves over all ranks
};

/// Meets the other ranks at the store and connects with each. Blocks until all have joined. RunError with
/// core::kExitPeerLost naming the ranks that did not join, or the reason why the store is unreachable.
std::unique_ptr<ProcessGroup> init_process_group(const core::RankInfo& info, const ProcessGroupOptions& options);

}  // namespace runner::distributed
