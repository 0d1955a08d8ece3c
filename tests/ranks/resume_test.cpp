// What a user sees of a killed, stopped or doubly started run, with the real program.

#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;
using tests::Process;
using tests::TempDir;

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

std::string corpus() {
  std::string text;
  for (int i = 0; text.size() < 40'000; ++i) text += "line " + std::to_string(i * i) + " of a small corpus\n";
  return text;
}

void write(const fs::path& path, const std::string& content) { std::ofstream(path) << content; }

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Workplace {
  Workplace() {
    write(fs::path(dir.path()) / "recipe.yaml", kRecipe);
    write(fs::path(dir.path()) / "corpus.txt", corpus());
  }
  std::vector<std::string> run(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {tests::roux_program(), "run", "recipe.yaml"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  std::vector<fs::path> run_dirs() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(fs::path(dir.path()) / "runs")) {
      if (entry.is_directory()) found.push_back(entry.path());
    }
    return found;
  }
  TempDir dir;
};

const std::map<std::string, std::string> kOneThread = {{"OMP_NUM_THREADS", "1"}};

/// Trains until that checkpoint is told of, sends the signal, and returns how it ended.
int interrupted(const Workplace& place, const std::string& checkpoint, int signal) {
  Process process(place.run(), kOneThread, place.dir.path());
  REQUIRE(process.wait_for(checkpoint));
  process.send(signal);
  const int status = process.wait();
  INFO(process.output());
  return status;
}

/// Bytes of the last checkpoint's tensors, of a run that nothing disturbed.
std::string undisturbed(const std::string& file) {
  const Workplace place;
  Process process(place.run(), kOneThread, place.dir.path());
  const int status = process.wait();
  INFO(process.output());
  REQUIRE(status == 0);
  return read(place.run_dirs().front() / "checkpoints/step-000300" / file);
}

}  // namespace

TEST_CASE("a killed run goes on with the same command and ends bit-identical", "[ranks][resume]") {
  const Workplace place;
  CHECK(interrupted(place, "step-000030", SIGKILL) == 128 + SIGKILL);
  Process second(place.run(), kOneThread, place.dir.path());
  const int status = second.wait();
  INFO(second.output());
  REQUIRE(status == 0);
  CHECK(second.output().find("resuming runs/resumable-") != std::string::npos);
  REQUIRE(place.run_dirs().size() == 1);
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "random_states_0.safetensors"}) {
    INFO(file);
    CHECK(read(place.run_dirs().front() / "checkpoints/step-000300" / file) == undisturbed(file));
  }
}

TEST_CASE("SIGTERM saves and exits 75, and the same command goes on to the same end", "[ranks][resume]") {
  const Workplace place;
  CHECK(interrupted(place, "step-000010", SIGTERM) == 75);
  Process second(place.run(), kOneThread, place.dir.path());
  const int status = second.wait();
  INFO(second.output());
  REQUIRE(status == 0);
  CHECK(read(place.run_dirs().front() / "checkpoints/step-000300/model.safetensors") ==
        undisturbed("model.safetensors"));
}

TEST_CASE("a second run of a living one is refused with its owner", "[ranks][resume]") {
  const Workplace place;
  Process first(place.run({"--set", "training.max_steps=1000000"}), kOneThread, place.dir.path());
  REQUIRE(first.wait_for("step-000010"));
  Process second(place.run({"--set", "training.max_steps=1000000"}), kOneThread, place.dir.path());
  CHECK(second.wait() == 2);
  INFO(second.output());
  CHECK(second.output().find("process " + std::to_string(first.pid())) != std::string::npos);
  CHECK(second.output().find("--new") != std::string::npos);
}

TEST_CASE("a finished run is not continued, and a changed recipe meets the resume contract", "[ranks][resume]") {
  const Workplace place;
  CHECK(interrupted(place, "step-000010", SIGKILL) == 128 + SIGKILL);
  {
    Process changed(place.run({"--set", "optimizer.lr=0.5"}), kOneThread, place.dir.path());
    CHECK(changed.wait() == 2);
    INFO(changed.output());
    CHECK(changed.output().find("optimizer.lr was 0.001") != std::string::npos);
    CHECK(changed.output().find("this changes the maths") != std::string::npos);
  }
  {
    Process same(place.run(), kOneThread, place.dir.path());
    CHECK(same.wait() == 0);
  }
  Process again(place.run(), kOneThread, place.dir.path());
  CHECK(again.wait() == 0);
  CHECK(place.run_dirs().size() == 2);
}
