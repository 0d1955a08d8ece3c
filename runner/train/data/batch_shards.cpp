#include "runner/train/data/batch_shards.h"

#include <algorithm>
#include <string>

#include "runner/core/error.h"

namespace runner::train {
namespace {

using Batches = std::vector<IndexBatch>;

std::int64_t size_of(const IndexBatch& batch) { return static_cast<std::int64_t>(batch.size()); }

/// [from, to) of a batch, clipped to its size.
IndexBatch part_of(const IndexBatch& batch, std::int64_t from, std::int64_t to) {
  from = std::min(from, size_of(batch));
  to = std::clamp(to, from, size_of(batch));
  return {batch.begin() + from, batch.begin() + to};
}

/// `samples`, repeated by doubling until there are at least `count`; the doubling determines the order.
void repeat_to(IndexBatch& samples, std::int64_t count) {
  while (size_of(samples) < count) {
    const IndexBatch once = samples;
    samples.insert(samples.end(), once.begin(), once.end());
  }
}

Batches split_each(const Batches& batches, const ShardOptions& options) {
  const std::int64_t share = options.batch_size / options.num_processes;
  const auto own = [&](const IndexBatch& batch) {
    return part_of(batch, share * options.process_index, share * (options.process_index + 1));
  };
  Batches mine;
  for (const IndexBatch& batch : batches) {
    if (size_of(batch) == options.batch_size) mine.push_back(own(batch));
  }
  if (options.drop_last || batches.empty() || size_of(batches.back()) == options.batch_size) return mine;
  IndexBatch last = batches.back();
  if (options.even_batches) {
    IndexBatch first = batches.front();
    repeat_to(first, options.batch_size);
    last.insert(last.end(), first.begin(), first.end());
  }
  if (IndexBatch part = own(last); !part.empty()) mine.push_back(std::move(part));
  return mine;
}

/// The rounds in which every process gets a full batch.
std::int64_t full_rounds(const Batches& batches, const ShardOptions& options) {
  std::int64_t rounds = static_cast<std::int64_t>(batches.size()) / options.num_processes;
  while (rounds > 0 && options.batch_size > 0 &&
         size_of(batches[static_cast<std::size_t>(rounds * options.num_processes - 1)]) != options.batch_size) {
    --rounds;
  }
  return rounds;
}

/// Fills up the incomplete round from the first round on: with samples up to the batch size, or with whole batches when
/// batch sizes vary.
void even_out(Batches& rest, const Batches& batches, const ShardOptions& options) {
  const auto processes = static_cast<std::size_t>(options.num_processes);
  const std::size_t first_round = std::min(processes, batches.size());
  if (options.batch_size <= 0) {
    for (std::size_t i = 0; rest.size() < processes; ++i) rest.push_back(batches[i % first_round]);
    return;
  }
  IndexBatch first;
  for (std::size_t i = 0; i < first_round; ++i) first.insert(first.end(), batches[i].begin(), batches[i].end());
  repeat_to(first, options.num_processes * options.batch_size);
  rest.resize(processes);
  auto next = first.begin();
  for (IndexBatch& batch : rest) {
    const auto end = next + (options.batch_size - size_of(batch));
    batch.insert(batch.end(), next, end);
    next = end;
  }
}

Batches deal_whole(const Batches& batches, const ShardOptions& options) {
  Batches mine;
  const std::int64_t rounds = full_rounds(batches, options);
  const auto begin = batches.begin() + rounds * options.num_processes;
  for (std::int64_t round = 0; round < rounds; ++round) {
    mine.push_back(batches[static_cast<std::size_t>(round * options.num_processes + options.process_index)]);
  }
  Batches rest(begin, batches.end());  // of the incomplete round
  if (options.drop_last || rest.empty()) return mine;
  if (options.even_batches) even_out(rest, batches, options);
  if (options.process_index < static_cast<std::int64_t>(rest.size())) {
    mine.push_back(std::move(rest[static_cast<std::size_t>(options.process_index)]));
  }
  return mine;
}

}  // namespace

core::Result<void> check_shards(const ShardOptions& options) {
  if (options.split_batches && (options.batch_size <= 0 || options.batch_size % options.num_processes != 0)) {
    return core::Failure{"split_batches cuts each batch into " + std::to_string(options.num_processes) +
                             " parts, but the batch size is " + std::to_string(options.batch_size),
                         "use a batch size divisible by the number of processes"};
  }
  return {};
}

std::vector<IndexBatch> shard_batches(const std::vector<IndexBatch>& batches, const ShardOptions& options) {
  RUNNER_ASSERT(check_shards(options), "checked before");
  return options.split_batches ? split_each(batches, options) : deal_whole(batches, options);
}

std::int64_t shard_length(std::int64_t batches, const ShardOptions& options) {
  if (options.split_batches) return batches;
  const std::int64_t rounds = batches / options.num_processes, rest = batches % options.num_processes;
  if (rest == 0 || options.drop_last) return rounds;
  return options.even_batches || options.process_index < rest ? rounds + 1 : rounds;
}

std::vector<std::int64_t> shard_stream(const std::vector<std::int64_t>& samples, const ShardOptions& options) {
  const std::int64_t whole = options.split_batches ? options.batch_size : options.batch_size * options.num_processes;
  const std::int64_t share = whole / options.num_processes;
  const auto size = static_cast<std::int64_t>(samples.size());
  const IndexBatch first = part_of(samples, 0, whole);
  std::vector<std::int64_t> mine;
  for (std::int64_t begin = 0; begin < size; begin += whole) {
    IndexBatch batch = part_of(samples, begin, begin + whole);
    if (size_of(batch) < whole && options.drop_last) break;
    while (size_of(batch) < whole) batch.insert(batch.end(), first.begin(), first.end());
    const IndexBatch own = part_of(batch, share * options.process_index, share * (options.process_index + 1));
    mine.insert(mine.end(), own.begin(), own.end());
  }
  return mine;
}

std::int64_t stream_shard_length(std::int64_t samples, const ShardOptions& options) {
  const std::int64_t round = options.batch_size * options.num_processes;
  const std::int64_t rounds = options.drop_last ? samples / round : (samples + round - 1) / round;
  return rounds * options.batch_size;
}

}  // namespace runner::train
