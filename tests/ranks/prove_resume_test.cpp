// Acceptance: killed at 20 random moments (7 of them, without ROUX_TEST_ALL=1) and at every moment at which something
// is half done, each run ends with the bits of the undisturbed one. The program proves it itself; that it would tell is
// shown in bitwise_compare_test.cpp.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/process/pretended_gpu.h"
#include "tests/support/process/process.h"
#include "tests/support/sampling.h"
#include "tests/support/temp_dir.h"

namespace {

using tests::Process;
using tests::TempDir;

struct Proof {
  std::vector<std::string> more = {};
  int kills = 20;  ///< random ones, of which a share is taken
  bool on_gpu = false;
};

void prove(const std::string& recipe, const Proof& proof = {}) {
  const TempDir dir;
  std::vector<std::string> command = {tests::roux_program(),
                                      "prove-resume",
                                      "tests/ranks/recipes/" + recipe,
                                      "--output-dir",
                                      dir.path(),
                                      "--seed",
                                      std::to_string(tests::seed()),
                                      "--kills",
                                      std::to_string(tests::share_of(proof.kills))};
  command.insert(command.end(), proof.more.begin(), proof.more.end());
  using Environment = std::map<std::string, std::string>;
  Process process(proof.on_gpu ? tests::on_gpu(command) : command, proof.on_gpu ? tests::with_gpus() : Environment{},
                  tests::source_dir());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  CHECK(process.output().find("each ended bit-identical to the straight run") != std::string::npos);
  CHECK(process.output().find("ended before it could be killed") == std::string::npos);
  CHECK(std::filesystem::is_empty(dir.path()));
}

}  // namespace

TEST_CASE("a GPT with dropout, shuffled in memory, ends bit-identical however it is killed", "[ranks][prove]") {
  prove("gpt.yaml");
}

TEST_CASE("a normalised table with dropout ends bit-identical however it is killed", "[ranks][prove]") {
  prove("csv_table.yaml");
}

TEST_CASE("two processes end bit-identical however they are killed", "[ranks][prove][processes]") {
  prove("csv_table.yaml", {.more = {"--set", "launch.num_processes=2"}});
}

TEST_CASE("frozen parameters end bit-identical however two processes are killed", "[ranks][prove][processes]") {
  prove("gpt.yaml", {.more = {"--set", "launch.num_processes=2", "--set", "training.freeze=[wte.*, h.0.*]", "--set",
                              "weight_averaging={type: ema}", "--set", "activation_checkpointing.mode=full"},
                     .kills = 5});
}

TEST_CASE("sharded gradients end bit-identical however three processes are killed", "[ranks][prove][processes]") {
  prove("gpt.yaml", {.more = {"--set", "launch.num_processes=3", "--set", "parallelism.shard=gradients"}});
}

TEST_CASE("streamed text ends bit-identical however it is killed", "[ranks][prove]") { prove("text_stream.yaml"); }

TEST_CASE("the steps to be killed at can be named, and a recipe that the clock decides about is refused",
          "[ranks][prove]") {
  prove("csv_table.yaml", {.more = {"--kill-at", "3,17"}, .kills = 0});
  const TempDir dir;
  // Time decides about the steps of these evaluations, so there is nothing to prove.
  Process refused({tests::roux_program(), "prove-resume", "tests/ranks/recipes/csv_table.yaml", "--output-dir",
                   dir.path(), "--set", "eval.eval_steps=5s"},
                  {}, tests::source_dir());
  CHECK(refused.wait() == 2);
  INFO(refused.output());
  CHECK(refused.output().find("eval.eval_steps counts time") != std::string::npos);
}

TEST_CASE("a training on a GPU ends bit-identical however it is killed", "[ranks][prove]") {
  prove("csv_table.yaml", {.more = {"--set", "device=cuda"}, .kills = 5, .on_gpu = true});
}

TEST_CASE("a GPT on a GPU ends bit-identical however it is killed", "[ranks][prove]") {
  prove("gpt.yaml", {.more = {"--set", "device=cuda"}, .kills = 5, .on_gpu = true});
}
