// What a user sees of a killed, stopped or doubly started run, with the real program.

#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/process/test_run.h"

namespace {

namespace fs = std::filesystem;
using tests::Process;
using tests::TestRun;

// Long enough that a signal after an early checkpoint always comes before the end.
constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: resumable
seed: 3
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 32, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, split: ":90%", max_seq_len: 32}
  val: {type: text, path: corpus.txt, split: "90%:", max_seq_len: 32}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
lr_scheduler: {type: cosine, warmup_steps: 5}
training: {max_steps: 300, micro_batch_size: 4, gradient_accumulation_steps: 2, clip_grad_norm: 1.0}
eval: {eval_steps: 15}
checkpoint: {save_steps: 10, save_total_limit: 3}
callbacks: [{type: early_stopping, monitor: val/loss, patience: 50}]
)";
constexpr const char* kLast = "step-000300";

struct Fixture : TestRun {
  Fixture() : TestRun(kRecipe) { write_corpus(40'000); }
  int runs() const {
    const auto runs = fs::directory_iterator(path() / "runs");
    return static_cast<int>(
        std::count_if(begin(runs), end(runs), [](const auto& entry) { return entry.is_directory(); }));
  }
};

/// Trains until that checkpoint is told of, sends the signal, and returns how it ended.
int interrupted(const Fixture& test, const std::string& checkpoint, int signal) {
  Process process(test.command(), TestRun::environment(), test.path());
  REQUIRE(process.wait_for(checkpoint));
  process.send(signal);
  const int status = process.wait();
  INFO(process.output());
  return status;
}

/// Bytes of the last checkpoint's tensors, of a run that nothing disturbed.
std::string undisturbed(const std::string& file) {
  static const Fixture test;
  static const TestRun::Ended ended = test.run();
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  return test.saved(kLast, file);
}

}  // namespace

TEST_CASE("a killed run resumes with the same command and ends bit-identical", "[ranks][resume]") {
  const Fixture test;
  CHECK(interrupted(test, "step-000030", SIGKILL) == 128 + SIGKILL);
  const auto second = test.run();
  INFO(second.output);
  REQUIRE(second.status == 0);
  CHECK(second.output.find("resuming runs/resumable-") != std::string::npos);
  REQUIRE(test.runs() == 1);
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "random_states_0.safetensors"}) {
    INFO(file);
    CHECK((test.saved(kLast, file) == undisturbed(file)));  // not printed: the bytes of a file
  }
}

TEST_CASE("SIGTERM saves and exits 75, and the same command resumes to the same end", "[ranks][resume]") {
  const Fixture test;
  CHECK(interrupted(test, "step-000010", SIGTERM) == 75);
  const auto second = test.run();
  INFO(second.output);
  REQUIRE(second.status == 0);
  CHECK((test.saved(kLast, "model.safetensors") == undisturbed("model.safetensors")));
}

TEST_CASE("a second run of a living one is refused with its owner", "[ranks][resume]") {
  const Fixture test;
  const std::vector<std::string> endless = {"training.max_steps=1000000"};
  Process first(test.command(endless), TestRun::environment(), test.path());
  REQUIRE(first.wait_for("step-000010"));
  const auto second = test.run(endless);
  CHECK(second.status == 2);
  INFO(second.output);
  CHECK(second.output.find("process " + std::to_string(first.pid())) != std::string::npos);
  CHECK(second.output.find("--new") != std::string::npos);
}

TEST_CASE("a finished run is not continued, and a changed recipe meets the resume contract", "[ranks][resume]") {
  const Fixture test;
  CHECK(interrupted(test, "step-000010", SIGKILL) == 128 + SIGKILL);
  {
    const auto changed = test.run({"optimizer.lr=0.5"});
    CHECK(changed.status == 2);
    INFO(changed.output);
    CHECK(changed.output.find("optimizer.lr was 0.001") != std::string::npos);
    CHECK(changed.output.find("changes the results") != std::string::npos);
  }
  CHECK(test.run().status == 0);
  CHECK(test.run().status == 0);
  CHECK(test.runs() == 2);
}
