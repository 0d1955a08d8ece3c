// The order of samples and their batches, case by case: torch.randperm, Accelerate's samplers over epochs, how batches
// are dealt out to one process and to several with a last round that is not full, and where a continued epoch begins.

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <set>

#include "components/tensor/tensors.h"
#include "runner/train/data/batch_shards.h"
#include "runner/train/data/loader.h"
#include "tests/support/golden.h"

namespace runner::train {
namespace {

using tests::golden::Json;
using Batches = std::vector<std::vector<std::int64_t>>;

/// Samples that are their own index.
class Numbered final : public components::data::Dataset {
 public:
  explicit Numbered(std::int64_t size) : size_(size) {}
  const components::BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override {
    batch.set(components::kInput, at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end())));
  }
  std::string describe() const override { return "numbers"; }

 private:
  components::BatchSpec signature_;
  std::int64_t size_;
};

/// The loaders of all ranks, as training makes them with compat: accelerate.
struct Ranks {
  Ranks(const Numbered& data, Loader::Options options, std::int64_t size) {
    options.ranks = static_cast<int>(size);
    for (; options.rank < options.ranks; ++options.rank) loaders.push_back(std::make_unique<Loader>(data, options));
  }
  void seek(Loader::Position position) const {
    for (const auto& loader : loaders) loader->seek(position);
  }
  const Loader& first() const { return *loaders.front(); }

  std::vector<std::unique_ptr<Loader>> loaders;
};

/// What each rank reads of an epoch, and all of it in the order that it was dealt out in.
struct Dealt {
  std::vector<Batches> per_rank;
  std::vector<std::int64_t> all;
};

/// Up to the end of the epoch that the ranks stand in.
Dealt rest_of_epoch(const Ranks& ranks) {
  Dealt dealt;
  dealt.per_rank.resize(ranks.loaders.size());
  if (ranks.first().batches_per_epoch() == 0) return dealt;
  for (const std::int64_t epoch = ranks.first().position().epoch; ranks.first().position().epoch == epoch;) {
    const std::int64_t count = ranks.first().batch_at(ranks.first().position().sample);
    const auto owner =
        std::find_if(ranks.loaders.begin(), ranks.loaders.end(), [](const auto& r) { return r->is_mine(); });
    for (auto loader = ranks.loaders.begin(); loader != ranks.loaders.end(); ++loader) {
      if (loader != owner) {
        (*loader)->skip(count);
        continue;
      }
      components::TensorMap batch;
      (*loader)->next(count, batch);
      const at::Tensor ids = batch.at(components::kInput);
      REQUIRE(ids.numel() == count);
      const auto* begin = ids.const_data_ptr<std::int64_t>();
      dealt.per_rank[static_cast<std::size_t>(owner - ranks.loaders.begin())].emplace_back(begin, begin + count);
      dealt.all.insert(dealt.all.end(), begin, begin + count);
    }
  }
  return dealt;
}

std::vector<std::int64_t> whole_order(const EpochOrder::Options& options, std::int64_t epoch) {
  EpochOrder order(options);
  const auto all = order.read(epoch, 0, EpochOrder::length(options));
  return {all.begin(), all.end()};
}

bool check_order(const tests::GoldenCase& c) {
  EpochOrder::Options options{.size = c.input.at("n").get<std::int64_t>(), .shuffle = true};
  options.seed = c.input.at("seed").get<std::uint64_t>();
  if (c.kind == "randperm") {
    CHECK(whole_order(options, 0) == c.expected.at("order").get<std::vector<std::int64_t>>());
    return true;
  }
  if (!c.input.at("num_samples").is_null()) options.num_samples = c.input.at("num_samples").get<std::int64_t>();
  options.replacement = c.input.at("replacement").get<bool>();
  for (std::size_t i = 0; i < c.input.at("epochs").size(); ++i) {
    const auto epoch = c.input.at("epochs")[i].get<std::int64_t>();
    CHECK(whole_order(options, epoch) == c.expected.at("orders")[i].get<std::vector<std::int64_t>>());
  }
  return true;
}

/// The arithmetic of what each process reads, for any number of processes.
bool check_shards_of(const tests::GoldenCase& c) {
  ShardOptions options;
  options.num_processes = c.input.at("num_processes").get<std::int64_t>();
  options.split_batches = c.input.at("split_batches").get<bool>();
  options.even_batches = c.input.value("even_batches", false);
  options.drop_last = c.input.value("drop_last", false);
  options.batch_size = c.input.value("batch_size", std::int64_t{0});
  Batches batches;
  std::vector<std::int64_t> samples(
      static_cast<std::size_t>(c.input.value("dataset_len", c.input.value("n_samples", std::int64_t{0}))));
  std::iota(samples.begin(), samples.end(), 0);
  if (c.kind == "batch_sampler_shard_custom") {
    batches = c.input.at("batches").get<Batches>();
  } else if (c.kind == "batch_sampler_shard") {
    for (auto from = samples.begin(); from != samples.end();) {
      const auto to = from + std::min<std::ptrdiff_t>(options.batch_size, samples.end() - from);
      if (to - from == options.batch_size || !options.drop_last) batches.emplace_back(from, to);
      from = to;
    }
  }
  const auto fits = check_shards(options);
  if (c.kind != "iterable_shard") REQUIRE(fits.ok() == !c.expected.contains("error"));
  if (c.expected.contains("error")) {
    CHECK(fits.failure().message.find("split_batches") != std::string::npos);
    return true;
  }
  for (std::int64_t rank = 0; rank < options.num_processes; ++rank) {
    options.process_index = rank;
    const auto& per_rank = c.expected.at("per_rank").at(static_cast<std::size_t>(rank));
    const auto length = c.expected.at("len").at(static_cast<std::size_t>(rank)).get<std::int64_t>();
    if (c.kind == "iterable_shard") {
      CHECK(shard_stream(samples, options) == per_rank.get<std::vector<std::int64_t>>());
      CHECK(stream_shard_length(static_cast<std::int64_t>(samples.size()), options) == length);
    } else {
      CHECK(shard_batches(batches, options) == per_rank.get<Batches>());
      CHECK(shard_length(static_cast<std::int64_t>(batches.size()), options) == length);
    }
  }
  return true;
}

/// What a process's random numbers are after it was seeded; `device_specific` adds its rank to the seed.
bool check_set_seed(const tests::GoldenCase& c) {
  for (std::size_t rank = 0; rank < c.expected.at("per_rank").size(); ++rank) {
    const auto& wanted = c.expected.at("per_rank")[rank];
    at::manual_seed(c.input.at("seed").get<std::uint64_t>() + (c.input.at("device_specific").get<bool>() ? rank : 0));
    const auto numbers_of = [](const at::Tensor& values) {
      const at::Tensor numbers = values.to(at::kDouble);
      return std::vector<double>(numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel());
    };
    tests::check_near(numbers_of(at::rand({4})), wanted.at("rand"), 1e-6, 1e-7);
    tests::check_near(numbers_of(at::randn({4})), wanted.at("randn"), 1e-6, 1e-7);
    tests::check_near(numbers_of(at::randint(0, 1000, {4})), wanted.at("randint"), 0, 0);
    tests::check_near(numbers_of(at::randperm(6)), wanted.at("randperm"), 0, 0);
  }
  return true;
}

/// The loader's options as a recipe with compat: accelerate settles them.
Loader::Options loader_options(const Json& input) {
  Loader::Options options;
  options.micro_batch_size = input.at("batch_size").get<std::int64_t>();
  if (input.value("split_batches", false)) options.micro_batch_size /= input.at("num_processes").get<std::int64_t>();
  options.drop_last = input.value("drop_last", false);
  // A stream is evened out whatever the key says.
  options.even = input.value("even_batches", true) || options.drop_last || input.value("iterable", false);
  options.cuts_last_round = input.value("dispatch_batches", false);
  return options;
}

void check_epochs(const tests::GoldenCase& c, const Numbered& data, Loader::Options options) {
  options.shuffle = true;
  options.seedable = c.input.at("seedable").get<bool>();
  options.seed = c.input.at("data_seed").is_null() || !options.seedable ? c.input.at("seed").get<std::uint64_t>()
                                                                        : c.input.at("data_seed").get<std::uint64_t>();
  const Ranks ranks(data, options, c.input.at("num_processes"));
  for (const auto& epoch : c.expected.at("epochs")) {
    CHECK(rest_of_epoch(ranks).per_rank == epoch.get<std::vector<Batches>>());
  }
}

void check_skips(const tests::GoldenCase& c, const Numbered& data, Loader::Options options) {
  if (c.input.at("shuffle_seedable_seed42").get<bool>()) {
    options.shuffle = true;
    options.seed = 42;
  }
  const std::int64_t processes = c.input.at("num_processes");
  const Ranks ranks(data, options, processes);
  for (const std::int64_t epoch : {0, 1}) {  // each pass over Accelerate's skipping loader skips again
    const char* pass = epoch == 0 ? "first_pass" : "second_pass";
    const std::int64_t sample = c.input.at("skip").get<std::int64_t>() * options.micro_batch_size * processes;
    std::vector<Batches> rest(static_cast<std::size_t>(processes));  // nothing where all of them were skipped
    if (sample < ranks.first().samples_per_epoch()) {
      ranks.seek({epoch, sample});
      rest = rest_of_epoch(ranks).per_rank;
    }
    CHECK(rest == c.expected.at(pass).get<std::vector<Batches>>());
  }
}

/// The samples of the epoch's last round that are not repeated ones.
std::int64_t counted_in_last_round(std::int64_t size, std::int64_t round) { return (size - 1) % round + 1; }

void check_epoch(const tests::GoldenCase& c, const Numbered& data, const Loader::Options& options) {
  const std::int64_t processes = c.input.at("num_processes"), size = data.size();
  const Ranks ranks(data, options, processes);
  const Dealt dealt = rest_of_epoch(ranks);
  auto wanted = c.expected.at("per_rank").get<std::vector<Batches>>();
  const bool dispatched = c.kind == "dispatcher";
  if (dispatched && !c.expected.contains("gathered_raw")) {
    // Accelerate repeats the first round's samples once, be they fewer than the ranks, and leaves some ranks empty.
    for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
      if (wanted[rank].back().empty()) wanted[rank].back() = dealt.per_rank[rank].back();
    }
  }
  CHECK(dealt.per_rank == wanted);
  const std::int64_t round = options.micro_batch_size * processes;
  if (c.expected.contains("total_batch_size") && !c.input.value("iterable", false)) {
    CHECK(round == c.expected.at("total_batch_size").get<std::int64_t>());
  }
  // What a stream does not tell beforehand, a file does.
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    const auto& length = c.expected.at("len")[rank];
    // Where batches are split a rank says how many there are, whether or not the last one has a sample for it.
    const Batches& read = dealt.per_rank[c.input.at("split_batches").get<bool>() ? 0 : rank];
    if (!length.is_null()) CHECK(read.size() == length.get<std::size_t>());
  }
  if (processes > 1 && c.kind != "iterable_prepared") {
    const std::int64_t left = options.drop_last ? round : counted_in_last_round(size, round);
    const std::int64_t remainder = dispatched ? left : options.drop_last ? -1 : left % round;
    for (std::size_t rank = 0; rank < wanted.size(); ++rank) {  // null: a rank without a batch never asked
      if (const Json& told = c.expected.at("remainder")[rank]; !told.is_null()) CHECK(told == remainder);
    }
  }
  if (c.expected.contains("gathered_raw")) {
    CHECK(dealt.all == c.expected.at("gathered_raw").get<std::vector<std::int64_t>>());
  }
  if (!c.expected.contains("gathered_for_metrics")) return;
  // Of a stream that is not dispatched Accelerate does not know where it ended.
  auto counted = dealt.all;
  if (c.kind != "iterable_prepared") counted.resize(std::min(counted.size(), static_cast<std::size_t>(size)));
  CHECK(counted == c.expected.at("gathered_for_metrics").get<std::vector<std::int64_t>>());
}

/// What the ranks read, with and without threads that read ahead.
bool check_loaders(const tests::GoldenCase& c) {
  const Numbered data(c.input.value("dataset_len", c.input.value("n_samples", std::int64_t{0})));
  for (const int workers : {0, 2}) {
    Loader::Options options = loader_options(c.input);
    options.num_workers = workers;
    if (c.kind == "shuffled_prepared") {
      check_epochs(c, data, options);
    } else if (c.kind == "skip_first_batches") {
      check_skips(c, data, options);
    } else {
      check_epoch(c, data, options);
    }
  }
  return true;
}

/// The same epochs dealt out by the loaders, where a batch can be split at all.
void check_shards_by_loader(const tests::GoldenCase& c) {
  const std::int64_t processes = c.input.at("num_processes");
  if (c.expected.contains("error") || processes == 1) return;
  if (c.input.at("split_batches").get<bool>() && c.input.at("batch_size").get<std::int64_t>() % processes != 0) return;
  const Numbered data(c.input.value("dataset_len", c.input.value("n_samples", std::int64_t{0})));
  Json input = c.input;
  input["iterable"] = c.kind == "iterable_shard";
  const Dealt dealt = rest_of_epoch(Ranks(data, loader_options(input), processes));
  const Json& wanted = c.expected.at("per_rank");
  if (c.kind == "batch_sampler_shard") {
    CHECK(dealt.per_rank == wanted.get<std::vector<Batches>>());
    return;
  }
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    std::vector<std::int64_t> flat;
    for (const auto& batch : dealt.per_rank[rank]) flat.insert(flat.end(), batch.begin(), batch.end());
    CHECK(flat == wanted[rank].get<std::vector<std::int64_t>>());
  }
}

}  // namespace

TEST_CASE("the order and the batches of Accelerate, and what each process reads", "[golden][loader]") {
  tests::for_each_case("batch_sampler_shard", [](const tests::GoldenCase& c) {
    INFO(c.kind << " " << c.name);
    if (c.kind == "randperm" || c.kind == "seedable_sampler") return check_order(c);
    if (c.kind == "set_seed") return check_set_seed(c);
    if (c.kind == "batch_sampler_shard_custom") return check_shards_of(c);
    if (c.kind == "batch_sampler_shard" || c.kind == "iterable_shard") {
      check_shards_by_loader(c);
      return check_shards_of(c);
    }
    static const std::set<std::string> loaders = {"prepared", "iterable_prepared", "dispatcher", "shuffled_prepared",
                                                  "skip_first_batches"};
    return loaders.contains(c.kind) && check_loaders(c);
  });
}

}  // namespace runner::train
