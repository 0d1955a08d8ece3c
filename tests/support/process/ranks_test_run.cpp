#include "tests/support/process/ranks_test_run.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

namespace tests {

const char* const ranks_recipes::kGpt = R"(
run_name: ranks
seed: 5
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 32}
data:
  train: {type: text, path: corpus.txt, split: ":90%", max_seq_len: 16}
  val: {type: text, path: corpus.txt, split: "90%:", max_seq_len: 16}
loss: cross_entropy
optimizer: {type: adamw, lr: 3.0e-3, weight_decay: 0.1}
lr_scheduler: {type: cosine, warmup_ratio: 0.1}
training: {max_steps: 50, micro_batch_size: 2, global_batch_size: 8, clip_grad_norm: 1.0}
eval: {eval_steps: 20, eval_on_start: true, micro_batch_size: 7, metrics: [perplexity, accuracy]}
ddp: {bucket_cap_mb: 0.01}
logging_steps: 1
)";

const char* const ranks_recipes::kTable = R"(
run_name: ranks
seed: 3
model: {type: mlp, hidden: [16]}
data:
  train: {type: csv_table, path: data.csv, target: y, normalize: true}
  val: {type: csv_table, path: val.csv, target: y, normalize: true}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
training: {max_steps: 50, micro_batch_size: 4, global_batch_size: 16}
eval: {eval_steps: 25, eval_on_start: true, micro_batch_size: 5, metrics: mse}
loader: {num_workers: 1}
logging_steps: 1
)";

namespace {

std::string rows(int count, int from) {
  std::string text = "a,b,c,y\n";
  for (int i = from; i < from + count; ++i) {
    const double a = std::sin(i * 1.0), b = std::cos(i * 2.0), c = std::sin(i * 3.0);
    text += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + "," +
            std::to_string(a + 2 * b - 3 * c) + "\n";
  }
  return text;
}

}  // namespace

RanksTestRun::RanksTestRun(const std::string& recipe) : TestRun(recipe) {
  write_corpus(4'000);
  write("data.csv", rows(41, 0));
  write("val.csv", rows(9, 100));
}

std::vector<runner::store::SeriesPoint> RanksTestRun::series(const std::string& name) const {
  return runner::store::read_series(run_dir().string(), name, "train", -1).value();
}

std::vector<std::string> RanksTestRun::verbose(const std::vector<std::string>& settings) const {
  auto words = command(settings);
  words.emplace_back("--verbose");
  return words;
}

const RanksTestRun& trained_alone(const std::string& recipe) {
  static std::map<std::string, RanksTestRun> runs;
  const auto [found, is_new] = runs.try_emplace(recipe, recipe);
  if (is_new) {
    const auto ended = found->second.run();
    INFO(ended.output);
    REQUIRE(ended.status == 0);
  }
  return found->second;
}

std::string processes(int count) { return "launch.num_processes=" + std::to_string(count); }

}  // namespace tests
