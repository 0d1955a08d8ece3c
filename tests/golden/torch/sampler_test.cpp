// The order of samples and their batches, case by case: torch.randperm, Accelerate's samplers over epochs, the batches
// of one process with and without a short last one, where a continued epoch begins, and how batches are dealt out to
// several processes.

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "components/tensors.h"
#include "runner/train/batch_shards.h"
#include "runner/train/loader.h"
#include "tests/support/golden.h"

namespace runner::train {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

/// Samples that are their own index.
class Numbered final : public components::data::Dataset {
 public:
  explicit Numbered(std::int64_t size) : size_(size) {}
  const components::DataSignature& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override {
    batch.set(components::kInput, at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end())));
  }
  std::string describe() const override { return "numbers"; }

 private:
  components::DataSignature signature_;
  std::int64_t size_;
};

/// The batches up to the end of the epoch that `loader` stands in.
Batches rest_of_epoch(Loader& loader) {
  Batches batches;
  if (loader.batches_per_epoch() == 0) return batches;
  for (const std::int64_t epoch = loader.position().epoch; loader.position().epoch == epoch;) {
    components::TensorMap batch;
    const std::int64_t count = loader.batch_at(loader.position().sample);
    loader.next(count, batch);
    const at::Tensor ids = batch.at(components::kInput);
    REQUIRE(ids.numel() == count);
    batches.emplace_back(ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + count);
  }
  return batches;
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

Batches epoch_of(Loader& loader) {
  Batches batches = rest_of_epoch(loader);
  if (batches.empty()) return batches;
  REQUIRE(static_cast<std::int64_t>(batches.size()) == loader.batches_per_epoch());
  return batches;
}

/// One process, with and without threads that read ahead.
bool check_batches(const tests::GoldenCase& c, int workers) {
  const auto size = c.input.value("dataset_len", c.input.value("n_samples", std::int64_t{0}));
  const Numbered data(size);
  Loader::Options options;
  options.num_workers = workers;
  options.micro_batch_size = c.input.at("batch_size").get<std::int64_t>();
  options.drop_last = c.input.value("drop_last", false);
  if (c.kind == "shuffled_prepared") {
    options.shuffle = true;
    options.seedable = c.input.at("seedable").get<bool>();
    options.seed = c.input.at("data_seed").is_null() || !options.seedable
                       ? c.input.at("seed").get<std::uint64_t>()
                       : c.input.at("data_seed").get<std::uint64_t>();
    Loader loader(data, options);
    for (const auto& epoch : c.expected.at("epochs")) CHECK(epoch_of(loader) == epoch[0].get<Batches>());
    return true;
  }
  if (c.kind == "skip_first_batches") {
    if (c.input.at("shuffle_seedable_seed42").get<bool>()) {
      options.shuffle = true;
      options.seed = 42;
    }
    Loader loader(data, options);
    for (const std::int64_t epoch : {0, 1}) {  // each pass over Accelerate's skipping loader skips again
      const char* pass = epoch == 0 ? "first_pass" : "second_pass";
      const std::int64_t sample = c.input.at("skip").get<std::int64_t>() * options.micro_batch_size;
      Batches rest;  // nothing where all of them were skipped
      if (sample < size) {
        loader.seek({epoch, sample});
        rest = rest_of_epoch(loader);
      }
      CHECK(rest == c.expected.at(pass)[0].get<Batches>());
    }
    return true;
  }
  Loader loader(data, options);
  const Batches batches = epoch_of(loader);
  CHECK(batches == c.expected.at("per_rank")[0].get<Batches>());
  // What a stream does not tell beforehand, a file does.
  if (const auto& length = c.expected.at("len")[0]; !length.is_null()) {
    CHECK(loader.batches_per_epoch() == length.get<std::int64_t>());
  }
  // What one process gathers is what it has: every sample once.
  std::vector<std::int64_t> seen;
  for (const auto& batch : batches) seen.insert(seen.end(), batch.begin(), batch.end());
  for (const char* gathered : {"gathered_for_metrics", "gathered_raw"}) {
    if (c.expected.contains(gathered)) CHECK(seen == c.expected.at(gathered).get<std::vector<std::int64_t>>());
  }
  return true;
}

}  // namespace

TEST_CASE("the order and the batches of Accelerate, and what each process reads", "[golden][loader]") {
  tests::for_each_case("batch_sampler_shard", [](const tests::GoldenCase& c) {
    INFO(c.kind << " " << c.name);
    if (c.kind == "randperm" || c.kind == "seedable_sampler") return check_order(c);
    if (c.kind == "set_seed") return check_set_seed(c);
    if (c.kind == "batch_sampler_shard" || c.kind == "batch_sampler_shard_custom" || c.kind == "iterable_shard") {
      return check_shards_of(c);
    }
    // What several processes gather needs several processes.
    if (c.input.at("num_processes").get<int>() != 1 || c.expected.contains("error")) return false;
    return check_batches(c, 0) && check_batches(c, 2);
  });
}

}  // namespace runner::train
