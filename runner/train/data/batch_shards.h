#pragma once

#include <cstdint>
#include <vector>

#include "runner/core/result.h"

namespace runner::train {

using IndexBatch = std::vector<std::int64_t>;

/// How the batches of an order are dealt to the processes of a run: pure index arithmetic, so each process computes its
/// own share without communication.
struct ShardOptions {
  std::int64_t num_processes = 1;
  std::int64_t process_index = 0;
  std::int64_t batch_size = 0;  ///< of a full batch; 0: batches of varying size
  bool split_batches = false;   ///< each batch is split among the processes instead of dealt whole
  bool even_batches = true;  ///< every process gets the same number of full batches by repeating the first samples, or
                             ///< the first batches when batch sizes vary
  bool drop_last = false;    ///< drop what does not make a full batch for each process
};

/// A batch size that cannot be split: Failure names the option.
core::Result<void> check_shards(const ShardOptions& options);

/// The batches of one process, out of all batches of the epoch.
/// Source  Accelerate `BatchSamplerShard`
std::vector<IndexBatch> shard_batches(const std::vector<IndexBatch>& batches, const ShardOptions& options);
/// The length that a process reports when there are `batches` in all. With varying batch sizes this is exact; an uneven
/// split may yield one less.
std::int64_t shard_length(std::int64_t batches, const ShardOptions& options);

/// The samples of one process from a stream without a length: `batch_size` (over all processes with split_batches) at a
/// time, the last ones filled up from the first batch. `even_batches` has no effect.
/// Source  Accelerate `IterableDatasetShard`
std::vector<std::int64_t> shard_stream(const std::vector<std::int64_t>& samples, const ShardOptions& options);
/// The length that a process reports when the stream turns out to have `samples`.
std::int64_t stream_shard_length(std::int64_t samples, const ShardOptions& options);

}  // namespace runner::train
