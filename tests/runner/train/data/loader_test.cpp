// What the loader hands out with threads that read ahead is what it hands out without.

#include "runner/train/data/loader.h"

#include <ATen/ops/tensor.h>
#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

using Samples = std::vector<std::int64_t>;

/// Samples that are their own index, and a watch on how they are read.
class Watched final : public components::data::Dataset {
 public:
  explicit Watched(std::int64_t size) : size_(size) {}
  const components::BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return size_; }
  void fetch(std::span<const std::int64_t> indices, components::TensorMap& batch) const override {
    const std::int64_t number = begun++;
    for (const std::int64_t index : indices) {
      if (index == bad_sample) throw core::RunError("sample " + std::to_string(index) + " is bad");
    }
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (sigismember(&blocked, SIGINT) == 0) ++reads_that_signals_may_end;
    if (number < swapped) end_in_pairs_swapped(number);
    batch.set(components::kInput, at::tensor(Samples(indices.begin(), indices.end())));
  }
  std::string describe() const override { return "numbers"; }

  mutable std::atomic<std::int64_t> begun = 0, reads_that_signals_may_end = 0;
  std::atomic<std::int64_t> bad_sample = -1;
  std::int64_t swapped = 0;  ///< number of first reads

 private:
  /// The first of two reads waits for the second: what was begun first ends last.
  void end_in_pairs_swapped(std::int64_t number) const {
    std::unique_lock lock(mutex_);
    if (number % 2 == 1) {
      second_done_ = number;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return second_done_ > number; });
    }
  }

  components::BatchSpec signature_;
  std::int64_t size_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::int64_t second_done_ = -1;
};

Samples read(Loader& loader, std::int64_t count) {
  components::TensorMap batch;
  loader.next(count, batch);
  const at::Tensor ids = batch.at(components::kInput);
  REQUIRE(ids.numel() == count);
  return {ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + count};
}

Samples read_one(Loader& loader) { return read(loader, loader.batch_at(loader.position().sample)); }

Loader::Options with_workers(int workers, std::int64_t factor = 2) {
  return {.micro_batch_size = 5, .shuffle = true, .seed = 7, .num_workers = workers, .prefetch_factor = factor};
}

}  // namespace

TEST_CASE("the number of workers changes no batch", "[train][loader]") {
  const Watched data(23);
  Loader alone(data, with_workers(0));
  std::vector<Samples> wanted;
  std::vector<Loader::Position> positions;
  for (int i = 0; i < 40; ++i) {
    wanted.push_back(read_one(alone));
    positions.push_back(alone.position());
  }
  for (const int workers : {1, 2, 5}) {
    for (const int factor : {1, 3}) {
      DYNAMIC_SECTION(workers << " workers, " << factor << " ahead") {
        Loader loader(data, with_workers(workers, factor));
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          REQUIRE(read_one(loader) == wanted[i]);
          REQUIRE(loader.position() == positions[i]);
        }
      }
    }
  }
}

TEST_CASE("ranks take batches in turn, and together all of them", "[train][loader]") {
  const Watched data(23);  // 5 batches an epoch, the last one of 3 samples
  Loader alone(data, with_workers(0));
  std::vector<Samples> wanted;
  for (int i = 0; i < 40; ++i) wanted.push_back(read_one(alone));
  for (const int ranks : {2, 3, 7}) {
    for (const int workers : {0, 2}) {
      DYNAMIC_SECTION(ranks << " ranks, " << workers << " workers") {
        for (int rank = 0; rank < ranks; ++rank) {
          Loader::Options options = with_workers(workers);
          options.rank = rank;
          options.ranks = ranks;
          Loader loader(data, options);
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            const bool mine = static_cast<int>(i) % ranks == rank;
            REQUIRE(loader.is_mine() == mine);
            if (mine) {
              REQUIRE(read_one(loader) == wanted[i]);
            } else {
              loader.skip(loader.batch_at(loader.position().sample));
            }
          }
          REQUIRE(loader.position() == alone.position());
        }
      }
    }
  }
}

TEST_CASE("batches come in order when they are read out of order", "[train][loader]") {
  Watched data(40);
  Loader alone(data, with_workers(0));
  std::vector<Samples> wanted;
  for (int i = 0; i < 16; ++i) wanted.push_back(read_one(alone));
  data.swapped = 16;
  data.begun = 0;
  Loader loader(data, with_workers(2, 4));
  for (const Samples& batch : wanted) REQUIRE(read_one(loader) == batch);
}

TEST_CASE("workers are ahead by so much and no more", "[train][loader]") {
  const Watched data(1000);
  Loader loader(data, with_workers(2, 3));
  for (std::int64_t taken = 1; taken <= 50; ++taken) {
    read_one(loader);
    REQUIRE(data.begun <= taken + 6);
  }
}

TEST_CASE("a loader continues from the position that it is set to", "[train][loader]") {
  const Watched data(23);
  Loader alone(data, with_workers(0)), loader(data, with_workers(2));
  for (const Loader::Position to : {Loader::Position{0, 0}, {3, 10}, {3, 5}, {0, 20}, {1, 0}, {1, 0}}) {
    alone.seek(to);
    loader.seek(to);
    for (int i = 0; i < 7; ++i) REQUIRE(read_one(loader) == read_one(alone));
    CHECK(loader.position() == alone.position());
  }
}

TEST_CASE("a position of a longer epoch is one of a later epoch", "[train][loader]") {
  const Watched data(23);
  Loader alone(data, with_workers(0)), loader(data, with_workers(0));
  alone.seek({4, 7});
  loader.seek({2, 2 * 23 + 7});
  CHECK(loader.position() == alone.position());
  CHECK(read(loader, 5) == read(alone, 5));
}

TEST_CASE("unexpected sizes are read as well", "[train][loader]") {
  const Watched data(23);
  Loader alone(data, with_workers(0)), loader(data, with_workers(2));
  loader.expect(3);
  for (const std::int64_t count : {3, 3, 2, 5, 5, 5, 3, 3, 3, 3, 1, 7})
    REQUIRE(read(loader, count) == read(alone, count));
  loader.expect(4);
  for (const std::int64_t count : {3, 4, 4, 4}) REQUIRE(read(loader, count) == read(alone, count));
}

TEST_CASE("what a worker could not read is an error where its batch is due", "[train][loader]") {
  Watched data(23);
  Loader alone(data, with_workers(0));
  for (int i = 0; i < 3; ++i) read_one(alone);
  const Loader::Position at = alone.position();
  const Samples wanted = read_one(alone), behind = read_one(alone);
  data.bad_sample = wanted[2];
  for (const int workers : {0, 1, 4}) {
    DYNAMIC_SECTION(workers << " workers") {
      Loader loader(data, with_workers(workers));
      for (int i = 0; i < 3; ++i) read_one(loader);
      for (int attempt = 0; attempt < 2; ++attempt) {
        CHECK_THROWS_WITH(read_one(loader), "sample " + std::to_string(wanted[2]) + " is bad");
        CHECK(loader.position() == at);
      }
      data.bad_sample = -1;
      CHECK(read_one(loader) == wanted);
      CHECK(read_one(loader) == behind);
    }
  }
}

TEST_CASE("signals reach the loop's thread, not the workers", "[train][loader]") {
  const Watched data(1000);
  {
    Loader loader(data, with_workers(3));
    for (int i = 0; i < 20; ++i) read_one(loader);
  }
  CHECK(data.begun >= 20);
  CHECK(data.reads_that_signals_may_end == 0);
  Loader alone(data, with_workers(0));
  read_one(alone);
  CHECK(data.reads_that_signals_may_end == 1);  // they are as they were
}

}  // namespace runner::train
