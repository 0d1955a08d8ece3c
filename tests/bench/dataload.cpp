// Batches per second of roux's loader, for tests/bench: bench_dataload FILE [--workers N] [--context T] [--batch B]
// [--batches K]. The same walk as peers/dataload.py: a file of 16-bit tokens, shuffled windows, K batches taken one
// after the other by a loop that does nothing else, after 100 that are not counted. One JSON line; `checksum` is of
// those 100 and does not depend on the workers.

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "components/data/data.h"
#include "components/tensor/tensors.h"
#include "runner/core/diagnostics.h"
#include "runner/core/error.h"
#include "runner/registry/registry.h"
#include "runner/registry/validate.h"
#include "runner/train/data/loader.h"

// The allocator of the program, as runner/cli/main.cpp sets it.
extern "C" {
__attribute__((visibility("default"))) const char* malloc_conf =
    "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";
}

namespace {

using runner::core::Node;

struct Arguments {
  std::string file;
  std::int64_t workers = 0, context = 256, batch = 8, batches = 4000;
};

bool read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      arguments.file = word;
      continue;
    }
    if (++i == argc) return false;
    const std::int64_t value = std::atoll(argv[i]);
    if (word == "--workers")
      arguments.workers = value;
    else if (word == "--context")
      arguments.context = value;
    else if (word == "--batch")
      arguments.batch = value;
    else if (word == "--batches")
      arguments.batches = value;
    else
      return false;
  }
  return !arguments.file.empty();
}

std::shared_ptr<components::data::Dataset> open_data(const Arguments& arguments) {
  Node block = Node::mapping();
  block.set("type", Node::string("tokens"));
  block.set("path", Node::string(arguments.file));
  block.set("vocab_size", Node::integer(65536));
  block.set("max_seq_len", Node::integer(arguments.context));
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

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read_arguments(argc, argv, arguments)) {
    std::fputs("usage: bench_dataload FILE [--workers N] [--context T] [--batch B] [--batches K]\n", stderr);
    return 2;
  }
  try {
    return measure(arguments);
  } catch (const runner::core::RunError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
}
