// The order of samples and their batches, case by case, as far as one process goes: torch.randperm, Accelerate's
// seedable sampler over epochs, its batches with and without a short last one, and where a continued epoch begins.

#include <ATen/ops/tensor.h>

#include <catch2/catch.hpp>

#include "components/tensors.h"
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

std::vector<std::int64_t> whole_order(std::int64_t size, std::uint64_t seed, std::int64_t epoch) {
  EpochOrder order({.size = size, .shuffle = true, .seed = seed});
  const auto all = order.read(epoch, 0, size);
  return {all.begin(), all.end()};
}

bool check_order(const tests::GoldenCase& c) {
  const auto size = c.input.at("n").get<std::int64_t>();
  const auto seed = c.input.at("seed").get<std::uint64_t>();
  if (c.kind == "randperm") {
    CHECK(whole_order(size, seed, 0) == c.expected.at("order").get<std::vector<std::int64_t>>());
    return true;
  }
  if (!c.input.at("num_samples").is_null() || c.input.at("replacement").get<bool>()) return false;
  for (std::size_t i = 0; i < c.input.at("epochs").size(); ++i) {
    const auto epoch = c.input.at("epochs")[i].get<std::int64_t>();
    CHECK(whole_order(size, seed, epoch) == c.expected.at("orders")[i].get<std::vector<std::int64_t>>());
  }
  return true;
}

bool check_batches(const tests::GoldenCase& c) {
  // A stream has no order of its own, and the dispatcher is about several processes.
  if (c.input.value("iterable", false) || c.input.value("dispatch_batches", false)) return false;
  if (!c.input.at("batch_size").is_number()) return false;
  // A shard of one fills its last batch up when it is used alone; Accelerate makes none for one process (`prepared`).
  if (c.kind == "batch_sampler_shard" && c.input.at("even_batches").get<bool>()) return false;
  const Numbered data(c.input.at("dataset_len").get<std::int64_t>());
  Loader::Options options;
  options.micro_batch_size = c.input.at("batch_size").get<std::int64_t>();
  options.drop_last = c.input.value("drop_last", false);
  if (c.kind == "shuffled_prepared") {
    if (!c.input.at("seedable").get<bool>()) return false;  // draws its order from the global generator
    options.shuffle = true;
    options.seed = c.input.at("data_seed").is_null() ? c.input.at("seed").get<std::uint64_t>()
                                                     : c.input.at("data_seed").get<std::uint64_t>();
    Loader loader(data, options);
    for (const auto& epoch : c.expected.at("epochs")) CHECK(rest_of_epoch(loader) == epoch[0].get<Batches>());
    return true;
  }
  if (c.kind == "skip_first_batches") {
    if (c.input.at("shuffle_seedable_seed42").get<bool>()) {
      options.shuffle = true;
      options.seed = 42;
    }
    Loader loader(data, options);
    loader.seek({0, c.input.at("skip").get<std::int64_t>() * options.micro_batch_size});
    CHECK(rest_of_epoch(loader) == c.expected.at("first_pass")[0].get<Batches>());
    return true;
  }
  Loader loader(data, options);
  CHECK(loader.batches_per_epoch() == c.expected.at("len")[0].get<std::int64_t>());
  CHECK(rest_of_epoch(loader) == c.expected.at("per_rank")[0].get<Batches>());
  return true;
}

}  // namespace

TEST_CASE("one process sees Accelerate's order and batches", "[golden][loader]") {
  tests::for_each_case("batch_sampler_shard", [](const tests::GoldenCase& c) {
    if (c.kind == "randperm" || c.kind == "seedable_sampler") return check_order(c);
    const bool covered = c.kind == "batch_sampler_shard" || c.kind == "prepared" || c.kind == "shuffled_prepared" ||
                         c.kind == "skip_first_batches";
    if (!covered || c.input.at("num_processes").get<int>() != 1) return false;
    if (c.expected.contains("error")) return false;
    return check_batches(c);
  });
}

}  // namespace runner::train
