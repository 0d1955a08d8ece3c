// What the loader hands out of a stream does not depend on workers, ranks, or where it was interrupted.

#include <ATen/ops/equal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/train/data/loader.h"
#include "tests/components/data/building.h"
#include "tests/support/folder.h"
#include "tests/support/paths.h"

namespace runner::train {
namespace {

using components::TensorMap;
using components::data::Dataset;

constexpr int kRecords = 700;  ///< more than samples between two marks
constexpr std::int64_t kBatch = 5;

struct Shards {
  tests::Folder folder;
  explicit Shards(int bad_record = -1) {
    const std::string examples = tests::source_dir() + "/recipes/examples/data/";
    folder.write("tokenizer.json", core::read_file(examples + "tokenizer.json", 1 << 20).value());
    std::string texts[3];
    for (int i = 0; i < kRecords; ++i) {
      const std::string text = i == bad_record ? "1" : "\"" + std::to_string(i) + std::string(i % 9U, 'x') + "\"";
      texts[i % 3] += "{\"text\": " + text + "}\n";
    }
    for (int i = 0; i < 3; ++i) folder.write(std::to_string(i) + ".jsonl", texts[i]);
  }
};

std::shared_ptr<Dataset> streamed(const std::string& more) {
  return tests::good_data(
      "{type: jsonl, path: \"?.jsonl\", tokenizer: {type: file, path: tokenizer.json}, "
      "max_seq_len: 16, streaming: true, shuffle_buffer: 40" +
      more + "}");
}

Loader::Options options_of(int workers, int rank = 0, int ranks = 1) {
  return {.micro_batch_size = kBatch,
          .shuffle = true,
          .seed = 7,
          .num_workers = workers,
          .prefetch_factor = 3,
          .rank = rank,
          .ranks = ranks};
}

at::Tensor read(Loader& loader, std::int64_t count = kBatch) {
  TensorMap batch;
  loader.next(count, batch);
  return batch.at(components::kInput).clone();
}

std::vector<at::Tensor> read_many(Loader& loader, int batches) {
  std::vector<at::Tensor> all;
  for (int i = 0; i < batches; ++i) all.push_back(read(loader));
  return all;
}

}  // namespace

TEST_CASE("ranks and workers change no batch of a stream", "[train][loader][stream]") {
  const Shards shards;
  for (const char* more : {"", ", packing: true", ", too_long: drop"}) {
    const auto data = streamed(more);
    Loader alone(*data, options_of(0));
    const auto wanted = read_many(alone, 60);
    for (const int ranks : {1, 2, 3}) {
      for (const int workers : {0, 1, 3}) {
        INFO(ranks << " ranks, " << workers << " workers" << more);
        for (int rank = 0; rank < ranks; ++rank) {
          Loader loader(*data, options_of(workers, rank, ranks));
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            REQUIRE(loader.is_mine() == (static_cast<int>(i) % ranks == rank));
            if (loader.is_mine()) {
              REQUIRE(at::equal(read(loader), wanted[i]));
            } else {
              loader.skip(kBatch);
            }
          }
          REQUIRE(loader.position() == alone.position());
          REQUIRE(core::to_json(loader.stream_state()) == core::to_json(alone.stream_state()));
        }
      }
    }
  }
}

TEST_CASE("a stream resumes from any batch, and its state does not tell that it was interrupted",
          "[train][loader][stream]") {
  const Shards shards;
  for (const char* more : {"", ", packing: true"}) {
    const auto data = streamed(more);
    for (const int workers : {0, 2}) {
      INFO(workers << " workers" << more);
      Loader whole(*data, options_of(workers));
      std::vector<core::Node> states;
      std::vector<at::Tensor> wanted;
      constexpr int kBatches = 170;  // more than a pass, and some marks
      for (int i = 0; i < kBatches; ++i) {
        states.push_back(core::parse_json(core::to_json(whole.stream_state(), -1)).value());
        whole.keep_from(whole.position());
        wanted.push_back(read(whole));
      }
      bool behind_a_mark = false;
      for (int from = 0; from < kBatches - 8; from += 17) {
        Loader resumed(*data, options_of(workers));
        const auto at = static_cast<std::size_t>(from);
        resumed.restore_stream(states[at]);
        resumed.seek({0, from * kBatch});
        behind_a_mark = behind_a_mark || states[at].find("sample")->as_integer() > 0;
        for (std::size_t i = at; i < at + 8; ++i) {
          REQUIRE(core::to_json(resumed.stream_state(), -1) == core::to_json(states[i], -1));
          REQUIRE(at::equal(read(resumed), wanted[i]));
        }
      }
      CHECK(behind_a_mark);
    }
  }
}

TEST_CASE("records that a stream skips are counted up to the position, whatever was read ahead",
          "[train][loader][stream]") {
  const Shards shards(100);
  const auto data = streamed(", on_bad_record: skip");
  constexpr int kPasses = 2, kBatches = kPasses * (kRecords - 1) / kBatch;
  for (const int ranks : {1, 2}) {
    for (const int workers : {0, 2}) {
      INFO(ranks << " ranks, " << workers << " workers");
      Loader loader(*data, options_of(workers, 0, ranks));
      core::Node saved;
      for (int i = 0; i < kBatches; ++i) {
        if (i == kBatches - 9) saved = core::parse_json(core::to_json(loader.stream_state(), -1)).value();
        loader.keep_from(loader.position());
        if (loader.is_mine()) {
          read(loader);
        } else {
          loader.skip(kBatch);
        }
      }
      CHECK(loader.stream_account().skipped == kPasses);
      CHECK(loader.stream_account().records >= kBatches * kBatch + 1);
      const auto end = loader.position();
      Loader resumed(*data, options_of(workers, 0, ranks));
      resumed.restore_stream(saved);
      resumed.seek(end);
      CHECK(resumed.stream_account().skipped == kPasses);
      CHECK(resumed.stream_account().records == loader.stream_account().records);
    }
  }
}

TEST_CASE("a stream goes back and forth, and reads unexpected sizes", "[train][loader][stream]") {
  const Shards shards;
  const auto data = streamed("");
  Loader plain(*data, options_of(0));
  const auto wanted = read_many(plain, 200);
  for (const int workers : {0, 2}) {
    Loader loader(*data, options_of(workers));
    for (const int to : {150, 3, 100, 99, 0, 199}) {
      loader.seek({0, to * kBatch});
      loader.keep_from(loader.position());
      REQUIRE(at::equal(read(loader), wanted[static_cast<std::size_t>(to)]));
    }
    loader.seek({0, 0});
    loader.expect(2);
    for (const std::int64_t count : {2, 2, 1}) CHECK(read(loader, count).size(0) == count);
    CHECK(at::equal(read(loader), wanted[1]));
  }
}

TEST_CASE("a bad record of a stream is an error where its batch is due, and again", "[train][loader][stream]") {
  const Shards shards(300);
  for (const char* more : {"", ", packing: true"}) {
    const auto data = streamed(more);
    for (const int workers : {0, 2}) {
      INFO(workers << " workers" << more);
      Loader loader(*data, options_of(workers));
      std::string message, again;
      Loader::Position at;
      try {
        for (;;) {
          at = loader.position();
          read(loader);
        }
      } catch (const core::RunError& error) {
        message = error.what();
      }
      CHECK_THAT(message, Catch::StartsWith("0.jsonl:101: "));
      CHECK(loader.position() == at);
      CHECK_THROWS_WITH(read(loader), message);
    }
  }
}

}  // namespace runner::train
