// Batches per second of roux's loader, for tests/bench: bench_dataload FILE [--workers N] [--context T] [--batch B]
// [--batches K] [--tokenizer TOKENIZER]. The same walk as peers/dataload.py: a file of 16-bit tokens, shuffled windows,
// K batches taken one after the other by a loop that does nothing else, after 100 that are not counted. One JSON line;
// `checksum` is of those 100 and does not depend on the workers.
//
// With --tokenizer TOKENIZER, FILE is a jsonl of texts: `rows_per_s` is the number of its packed rows of T tokens over
// the time from opening the file to the last batch of one epoch, in the file's order, as peers/jsonl.py takes it. With
// --encode 1 as well, `mb_per_s` is of the time from opening the file until the ids of all records are in memory, as
// peers/encode.py takes it. Of a Parquet file it reads the texts alone, as peers/parquet.py.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "components/data/data.h"
#include "components/tensor/tensors.h"
#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/core/table/table_file.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/train/data/loader.h"

// The allocator of the program, as runner/cli/main.cpp sets it.
extern "C" {
__attribute__((visibility("default"))) const char* malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,lg_extent_max_active_fit:40";
}

namespace {

using runner::core::Node;

struct Arguments {
  std::string file, tokenizer;
  std::int64_t workers = 0, context = 256, batch = 8, batches = 4000, encode = 0;
};

bool read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      arguments.file = word;
      continue;
    }
    if (++i == argc) return false;
    if (word == "--tokenizer") {
      arguments.tokenizer = argv[i];
      continue;
    }
    const std::int64_t value = std::atoll(argv[i]);
    if (word == "--workers")
      arguments.workers = value;
    else if (word == "--context")
      arguments.context = value;
    else if (word == "--batch")
      arguments.batch = value;
    else if (word == "--batches")
      arguments.batches = value;
    else if (word == "--encode")
      arguments.encode = value;
    else
      return false;
  }
  return !arguments.file.empty();
}

Node data_block(const Arguments& arguments) {
  Node block = Node::mapping();
  block.set("type", Node::string(arguments.tokenizer.empty() ? "tokens" : "jsonl"));
  block.set("path", Node::string(arguments.file));
  block.set("max_seq_len", Node::integer(arguments.context));
  if (arguments.tokenizer.empty()) {
    block.set("vocab_size", Node::integer(65536));
    return block;
  }
  Node tokenizer = Node::mapping();
  tokenizer.set("type", Node::string("file"));
  tokenizer.set("path", Node::string(arguments.tokenizer));
  block.set("tokenizer", std::move(tokenizer));
  block.set("packing", Node::boolean(arguments.encode == 0));
  return block;
}

std::shared_ptr<components::data::Dataset> open_data(const Arguments& arguments) {
  Node block = data_block(arguments);
  runner::core::Diagnostics diagnostics;
  block =
      runner::registry::validate_component(block, "data", "data", runner::registry::Registry::builtin(), diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  auto data = components::data::build(block, {"train", block, diagnostics});
  if (data == nullptr) std::fputs(runner::core::render(diagnostics).c_str(), stderr);
  return data;
}

std::int64_t sum_of(const components::TensorMap& batch) {
  std::int64_t sum = 0;
  for (const auto& item : batch.items()) {
    const auto* values = item.tensor.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < item.tensor.numel(); ++i) sum = sum * 31 + values[i] % 1009;
  }
  return sum;
}

int measure(const Arguments& arguments) {
  const auto data = open_data(arguments);
  if (data == nullptr) return 2;
  runner::train::Loader loader(*data, {.micro_batch_size = arguments.batch,
                                       .shuffle = true,
                                       .drop_last = true,
                                       .num_workers = static_cast<int>(arguments.workers)});
  components::TensorMap batch;
  std::uint64_t checksum = 0;
  for (int i = 0; i < 100; ++i) {
    loader.next(arguments.batch, batch);
    checksum = checksum * 1000003 + static_cast<std::uint64_t>(sum_of(batch));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < arguments.batches; ++i) loader.next(arguments.batch, batch);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double rate = static_cast<double>(arguments.batches) / seconds.count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"workload\": \"dataload\", \"peer\": \"roux\", \"workers\": %lld, \"batches_per_s\": %.6g, "
      "\"tokens_per_s\": %.6g, \"peak_rss_mb\": %.6g, \"checksum\": %llu}\n",
      static_cast<long long>(arguments.workers), rate, rate * static_cast<double>(arguments.batch * arguments.context),
      static_cast<double>(usage.ru_maxrss) / 1024, static_cast<unsigned long long>(checksum));
  return 0;
}

int measure_records(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto data = open_data(arguments);
  if (data == nullptr) return 2;
  runner::train::Loader loader(
      *data, {.micro_batch_size = arguments.batch, .num_workers = static_cast<int>(arguments.workers)});
  const std::int64_t rows = loader.samples_per_epoch();
  components::TensorMap batch;
  for (std::int64_t row = 0; row < rows; row += arguments.batch) loader.next(loader.batch_at(row), batch);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf(
      "{\"workload\": \"jsonl\", \"peer\": \"roux\", \"workers\": %lld, \"rows\": %lld, \"rows_per_s\": %.6g}\n",
      static_cast<long long>(arguments.workers), static_cast<long long>(rows),
      static_cast<double>(rows) / seconds.count());
  return 0;
}

int measure_encoding(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto data = open_data(arguments);
  if (data == nullptr) return 2;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"workload\": \"encode\", \"peer\": \"roux\", \"records\": %lld, \"mb_per_s\": %.6g}\n",
              static_cast<long long>(data->size()),
              static_cast<double>(std::filesystem::file_size(arguments.file)) / 1e6 / seconds.count());
  return 0;
}

/// Every text of the column `text`, from opening the file to its last row, as peers/parquet.py takes it.
int measure_texts(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const auto file = runner::core::table_library().value()->open(arguments.file, {}).value();
  file->choose({"text"}).value();
  std::int64_t rows = 0, bytes = 0;
  while (const auto some = file->next().value()) {
    for (std::int64_t i = 0; i < some->size(); ++i)
      bytes += static_cast<std::int64_t>(some->text(i).value_or("").size());
    rows += some->size();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"workload\": \"parquet\", \"peer\": \"roux\", \"rows\": %lld, \"mb_per_s\": %.6g}\n",
              static_cast<long long>(rows), static_cast<double>(bytes) / 1e6 / seconds.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read_arguments(argc, argv, arguments)) {
    std::fputs(
        "usage: bench_dataload FILE [--workers N] [--context T] [--batch B] [--batches K] [--tokenizer TOKENIZER] "
        "[--encode 1]\n",
        stderr);
    return 2;
  }
  try {
    if (runner::core::is_table_path(arguments.file)) return measure_texts(arguments);
    if (arguments.tokenizer.empty()) return measure(arguments);
    return arguments.encode != 0 ? measure_encoding(arguments) : measure_records(arguments);
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
