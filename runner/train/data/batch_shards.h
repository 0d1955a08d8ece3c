#pragma once

#include <cstdint>
#include <vector>

#include "runner/core/result.h"

namespace runner::train {

using IndexBatch = std::vector<std::int64_t>;

/// How the batches of one order are dealt out to the processes of a run: which process reads what is arithmetic on
/// indices, so each one works out its own share without asking the others.
struct ShardOptions {
  std::int64_t num_processes = 1;
  std::int64_t process_index = 0;
  std::int64_t batch_size = 0;  ///< of a full batch; 0: batches of varying size
  bool split_batches = false;   ///< each batch is cut into as many parts as there are processes, instead of dealt whole
  bool even_batches = true;     ///< every process gets as many full batches, by repeating what came first: samples, or
                                ///< whole batches where their size varies
  bool drop_last = false;       ///< what does not make a full batch for each of them is left out
};

/// A batch size that cannot be split: Failure names the option.
core::Result<void> check_shards(const ShardOptions& options);

/// The batches of one process, out of all batches of the epoch.
/// Source  Accelerate `BatchSamplerShard`
std::vector<IndexBatch> shard_batches(const std::vector<IndexBatch>& batches, const ShardOptions& options);
/// How many batches a process is said to have when there are `batches` in all. With batches of varying size this is
/// what it gets; an uneven split may give it one less.
std::int64_t shard_length(std::int64_t batches, const ShardOptions& options);

/// The samples of one process, out of a stream that has no length: `batch_size` (over all processes with
/// split_batches) at a time, the last ones filled up from the first batch. `even_batches` has no say here.
/// Source  Accelerate `IterableDatasetShard`
std::vector<std::int64_t> shard_stream(const std::vector<std::int64_t>& samples, const ShardOptions& options);
/// How many samples a process is said to have when the stream turns out to have `samples`.
std::int64_t stream_shard_length(std::int64_t samples, const ShardOptions& options);

}  // namespace runner::train
