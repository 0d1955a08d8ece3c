// A run resumes with another number of processes: the same samples, each once, and the curve of one process.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>

#include "tests/support/process/ranks_test_run.h"

namespace {

using tests::processes;
using tests::RanksTestRun;

// Row i has the target 2^i, and nothing that a weight could be multiplied with: whatever the weights are, its loss is
// 4^i, and the sum of a step counts in base 4 how often it saw each row. Steps of 4, 4 and 3 samples.
constexpr const char* kCounted = R"(
run_name: counted
model: {type: mlp, hidden: [], bias: false}
data: {train: {type: csv_table, path: counted.csv, target: y, normalize: false}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-2}
training: {max_steps: 1, micro_batch_size: 1, global_batch_size: 4}
logging_steps: 1
)";
constexpr int kRows = 11;

/// Resumes the run's last checkpoint with this many processes, up to a step.
void go_on(const RanksTestRun& test, int count, int max_steps) {
  std::vector<std::string> words = {"resume", test.run_dir().string(), "--checkpoint",
                                    "last",   "--allow-change",        "launch.num_processes"};
  for (const std::string& setting : {processes(count), "training.max_steps=" + std::to_string(max_steps)}) {
    words.insert(words.end(), {"--set", setting});
  }
  const auto ended = test.roux(words);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
}

}  // namespace

TEST_CASE("each sample is seen once in an epoch that 4, 2 and 3 processes share", "[ranks][elastic]") {
  const RanksTestRun test(kCounted);
  std::string rows = "x,y\n";
  for (int i = 0; i < kRows; ++i) rows += "0.0," + std::to_string(1 << i) + ".0\n";
  test.write("counted.csv", rows);
  const auto begun = test.run({processes(4)});
  INFO(begun.output);
  REQUIRE(begun.status == 0);
  go_on(test, 2, 2);
  go_on(test, 3, 3);  // 3 do not divide the 4 samples of a step

  const auto losses = test.series("loss");
  REQUIRE(losses.size() == 3);
  constexpr int kSamples[] = {4, 4, 3};
  std::vector<int> seen(kRows, 0);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    auto counts = static_cast<std::int64_t>(std::llround(losses[step].value * kSamples[step]));
    for (int& times : seen) {
      times += static_cast<int>(counts % 4);
      counts /= 4;
    }
    CHECK(counts == 0);
  }
  CHECK(seen == std::vector<int>(kRows, 1));
}

TEST_CASE("a run that resumes with other numbers of processes has the curve of one", "[ranks][elastic]") {
  const char* recipe = GENERATE(tests::ranks_recipes::kGpt, tests::ranks_recipes::kTable);
  const bool is_text = recipe == tests::ranks_recipes::kGpt, streams = is_text && GENERATE(false, true);
  std::vector<std::string> first = {is_text ? "lr_scheduler.total_steps=50" : "logging_steps=1", processes(4),
                                    "training.max_steps=17"};
  std::unique_ptr<RanksTestRun> streamed;
  if (streams) {
    const std::vector<std::string> stream = {"data.train.streaming=true", "data.val.streaming=true"};
    streamed = std::make_unique<RanksTestRun>(recipe);
    REQUIRE(streamed->run(stream).status == 0);
    first.insert(first.end(), stream.begin(), stream.end());
  }
  const RanksTestRun& alone = streams ? *streamed : tests::trained_alone(recipe);
  const RanksTestRun elastic(recipe);
  const auto begun = elastic.run(first);
  INFO(begun.output);
  REQUIRE(begun.status == 0);
  go_on(elastic, 2, 31);
  go_on(elastic, 3, 50);

  const auto expected = alone.series("loss"), found = elastic.series("loss");
  REQUIRE(expected.size() == 50);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].step == expected[i].step);
    CHECK(std::abs(found[i].value - expected[i].value) <= 1e-5 * std::abs(expected[i].value));
  }
  const auto rates = alone.series("lr"), their_rates = elastic.series("lr");
  REQUIRE(their_rates.size() == rates.size());
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(their_rates[i].value == rates[i].value);
}
