#include "runner/engine/self_test.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

#include "components/tensor/device.h"
#include "runner/core/error.h"
#include "runner/core/platform/machine.h"
#include "runner/distributed/collectives.h"
#include "runner/distributed/process_group.h"
#include "runner/distributed/pytree.h"
#include "runner/train/data/batch_shards.h"
#include "runner/train/data/epoch_order.h"

namespace runner::engine {
namespace {

using core::Node;
using distributed::ProcessGroup;
using distributed::Pytree;

constexpr const char* kSite = "self-test";

/// RunError on all ranks if `holds` is false on one of them.
void expect(ProcessGroup& ranks, bool holds, const std::string& what) {
  const std::vector<std::string> all = ranks.all_gather(std::string(holds ? "1" : "0"), kSite);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == "1") continue;
    throw core::RunError(what + " is wrong on rank " + std::to_string(rank),
                         "please report this with the output of `roux env` on each machine");
  }
}

/// [rank, rank, ...] of `rows` rows.
at::Tensor numbered(int rank, std::int64_t rows) { return at::full({rows, 2}, static_cast<double>(rank), at::kFloat); }

std::string hosts(ProcessGroup& ranks) {
  std::map<std::string, int> count;
  for (const std::string& host : ranks.all_gather(core::host_name(), kSite)) ++count[host];
  std::string text;
  for (const auto& [host, processes] : count) {
    text += (text.empty() ? "" : ", ") + std::to_string(processes) + " on " + host;
  }
  return text;
}

void gathers(ProcessGroup& ranks) {
  std::vector<at::Tensor> expected;
  for (int rank = 0; rank < ranks.size(); ++rank) expected.push_back(numbered(rank, 3));
  const Pytree all = distributed::gather(ranks, {numbered(ranks.rank(), 3)}, kSite);
  expect(ranks, at::equal(*all.tensor(), at::cat(expected)), "gather");
  const Node names = distributed::gather_object(ranks, Node::sequence({Node::integer(ranks.rank())}), kSite);
  expect(
      ranks,
      static_cast<int>(names.items().size()) == ranks.size() && names.items().back().as_integer() + 1 == ranks.size(),
      "gather_object");
}

void reduces(ProcessGroup& ranks) {
  const double sum = ranks.size() * (ranks.size() - 1) / 2.0;
  const Pytree added = distributed::reduce(ranks, {numbered(ranks.rank(), 3)}, distributed::Reduction::kSum, kSite);
  expect(ranks, at::equal(*added.tensor(), at::full({3, 2}, sum, at::kFloat)), "reduce (sum)");
  const Pytree largest = distributed::reduce(ranks, {numbered(ranks.rank(), 3)}, distributed::Reduction::kMax, kSite);
  expect(ranks, at::equal(*largest.tensor(), numbered(ranks.size() - 1, 3)), "reduce (max)");
}

void broadcasts(ProcessGroup& ranks) {
  const int last = ranks.size() - 1;
  const Pytree sent = distributed::broadcast(ranks, {numbered(ranks.rank(), 3)}, last, kSite);
  expect(ranks, at::equal(*sent.tensor(), numbered(last, 3)), "broadcast");
}

void pads_and_splits(ProcessGroup& ranks) {
  const Pytree padded = distributed::pad_across_processes(ranks, {numbered(ranks.rank(), ranks.rank() + 1)}, {}, kSite);
  expect(ranks, padded.tensor()->size(0) == ranks.size(), "pad_across_processes");
  const at::Tensor rows = at::arange(2 * ranks.size() + 1);
  const Pytree mine = distributed::split_between_processes({rows}, {ranks.rank(), ranks.size(), false});
  const Node counts = distributed::gather_object(ranks, Node::sequence({Node::integer(mine.tensor()->size(0))}), kSite);
  std::int64_t total = 0;
  for (const Node& count : counts.items()) total += count.as_integer();
  expect(ranks, total == rows.size(0), "split_between_processes");
}

void triggers(ProcessGroup& ranks) {
  distributed::Trigger trigger;
  if (ranks.rank() == ranks.size() - 1) trigger.set();
  expect(ranks, trigger.check(ranks, kSite), "a trigger");
  expect(ranks, !trigger.check(ranks, kSite), "a trigger that was cleared");
}

/// Every sample of an epoch is read once, by one rank, and the order is the same on all ranks.
void shards(ProcessGroup& ranks) {
  constexpr std::int64_t kSamples = 101, kBatch = 4;
  train::EpochOrder::Options options;
  options.size = kSamples;
  options.shuffle = true;
  options.seed = 7;
  train::EpochOrder order(options);
  std::vector<train::IndexBatch> batches;
  for (std::int64_t begin = 0; begin < kSamples; begin += kBatch) {
    const auto samples = order.read(1, begin, std::min(kBatch, kSamples - begin));
    batches.emplace_back(samples.begin(), samples.end());
  }
  train::ShardOptions share;
  share.num_processes = ranks.size();
  share.process_index = ranks.rank();
  share.batch_size = kBatch;
  share.even_batches = false;
  std::vector<Node> mine;
  for (const train::IndexBatch& batch : train::shard_batches(batches, share)) {
    for (const std::int64_t sample : batch) mine.push_back(Node::integer(sample));
  }
  std::vector<std::int64_t> seen;
  const Node theirs = distributed::gather_object(ranks, Node::sequence(std::move(mine)), kSite);
  for (const Node& sample : theirs.items()) {
    seen.push_back(sample.as_integer());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  expect(ranks, seen == all, "the samples of each rank");
}

void random_numbers(ProcessGroup& ranks) {
  const at::Tensor drawn = at::rand({16}, at::make_generator<at::CPUGeneratorImpl>(7));
  const Pytree first = distributed::broadcast(ranks, {drawn}, 0, kSite);
  expect(ranks, at::equal(*first.tensor(), drawn), "a random number of the same seed");
}

/// A group of this process alone.
std::unique_ptr<ProcessGroup> connect_one(core::ConnectNccl connect, double timeout_s) {
  core::RankInfo alone;
  alone.hosts_store = true;  // at any port
  auto ranks = distributed::init_process_group(alone, {timeout_s, /*debug=*/true});
  ranks->connect_gpus(connect, 0);
  return ranks;
}

void exchanges_on_gpu(ProcessGroup& ranks, const at::Tensor& tensor) {
  const at::Tensor reduced = tensor.clone();
  ranks.begin_all_reduce(reduced, kSite)->wait();
  expect(ranks, at::equal(reduced, tensor), "all_reduce");
  expect(ranks, at::equal(ranks.all_gather(tensor, kSite).front(), tensor), "all_gather");
  const at::Tensor sent = tensor.clone();
  ranks.broadcast(sent, 0, kSite);
  expect(ranks, at::equal(sent, tensor), "broadcast");
}

void hangs_on_gpu(ProcessGroup& ranks, const at::Tensor& tensor) {
  try {
    ranks.begin_all_reduce(tensor, kSite)->wait();
  } catch (const core::RunError& error) {
    if (std::string(error.what()).starts_with("rank 0: all_reduce of self-test waited ")) return;
    throw;
  }
  throw core::RunError("an all_reduce that hung was not reported");
}

}  // namespace

std::vector<std::string> self_test_nccl(core::ConnectNccl connect,
                                        const std::function<void(std::chrono::milliseconds)>& hold) {
  constexpr double kPatience_s = 60, kHang_s = 2;
  const at::Tensor tensor = at::arange(128, at::kFloat).to(components::named_device("cuda"));
  exchanges_on_gpu(*connect_one(connect, kPatience_s), tensor);
  const auto ranks = connect_one(connect, kHang_s);
  hold(std::chrono::seconds(2 * static_cast<int>(kHang_s)));
  hangs_on_gpu(*ranks, tensor);
  return {"NCCL group of one rank", "NCCL collective that hangs"};
}

std::vector<std::string> self_test(const core::RankInfo& info, double timeout_s) {
  const auto ranks = distributed::init_process_group(info, {timeout_s, /*debug=*/true});
  std::vector<std::string> lines = {std::to_string(ranks->size()) + " processes connected: " + hosts(*ranks)};
  struct Check {
    const char* what;
    void (*run)(ProcessGroup&);
  };
  static constexpr Check kChecks[] = {
      {"gather, gather_object", gathers},
      {"reduce: sum and max", reduces},
      {"broadcast", broadcasts},
      {"pad_across_processes, split_between_processes", pads_and_splits},
      {"triggers", triggers},
      {"samples: each is read once, by one process", shards},
      {"random numbers: the same seed gives the same numbers", random_numbers},
  };
  for (const Check& check : kChecks) {
    check.run(*ranks);
    lines.emplace_back(check.what);
  }
  distributed::wait_for_everyone(*ranks, kSite);
  return lines;
}

}  // namespace runner::engine
