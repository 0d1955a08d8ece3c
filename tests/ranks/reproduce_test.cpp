// A run is made again from what it recorded of itself; one changed byte, value or thread count is named as the cause.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process/test_run.h"

namespace {

namespace fs = std::filesystem;
using tests::TestRun;

constexpr const char* kRecipe = R"(recipe_version: 1
run_name: again
seed: 3
model: {type: gpt, n_layer: 1, n_head: 2, n_embd: 32, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, split: ":90%", max_seq_len: 32}
  val: {type: text, path: corpus.txt, split: "90%:", max_seq_len: 32}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 40, micro_batch_size: 16, clip_grad_norm: 1.0}
eval: {eval_steps: 10}
logging_steps: 2
)";

/// A run that was trained; each has a copy of the same one, or one of its own, which knows where its recipe is.
struct Fixture : TestRun {
  struct Trained {};
  Fixture() : TestRun(kRecipe) {
    static const Fixture original{Trained()};
    fs::copy(original.path(), path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  Ended roux(const std::vector<std::string>& words, const std::string& threads = "2") const {
    return TestRun::roux(words, {{"OMP_NUM_THREADS", threads}});
  }
  explicit Fixture(Trained) : TestRun(kRecipe) {
    write_corpus(20'000);
    const auto trained = roux({"run", "recipe.yaml"});
    INFO(trained.output);
    REQUIRE(trained.status == 0);
  }
};

bool has(const TestRun::Ended& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("an unchanged run is reproduced to the last bit", "[ranks][reproduce]") {
  const Fixture test;
  const auto result = test.roux({"reproduce", "again"});
  INFO(result.output);
  CHECK(result.status == 0);
  CHECK(has(result, "recipe, data, threads, CPU and program are the same as in runs/again-"));
  CHECK(has(result, "reproduced: runs/again-again-"));
  // That one in its turn gets a number and no second word.
  CHECK(has(test.roux({"reproduce", "last"}), "reproduced: runs/again-again-2-"));
  CHECK(has(test.roux({"reproduce", "last"}), "reproduced: runs/again-again-3-"));
}

TEST_CASE("one changed byte of the data is the cause that is named", "[ranks][reproduce]") {
  const Fixture test;
  std::fstream file(test.path() / "corpus.txt", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('#');
  file.close();
  const auto result = test.roux({"reproduce", "again"});
  INFO(result.output);
  CHECK(result.status == 1);
  CHECK(has(result, "file corpus.txt of data.train was "));
  CHECK(has(result, "not reproduced; the first difference of runs/again-again-"));
  CHECK(!has(result, "threads was"));
  CHECK(!has(result, "optimizer."));
}

TEST_CASE("one changed value of the recipe is the cause that is named", "[ranks][reproduce]") {
  const Fixture test{Fixture::Trained()};
  std::string edited = kRecipe;
  edited.replace(edited.find("1.0e-3"), 6, "1.1e-3");
  test.write("recipe.yaml", edited);
  {
    const auto as_recorded = test.roux({"reproduce", "again"});
    INFO(as_recorded.output);
    CHECK(as_recorded.status == 0);
    CHECK(has(as_recorded, "the recipe has changed; using the recorded one (--recipe recipe.yaml"));
    CHECK(has(as_recorded, "optimizer.lr was 0.001 (runs/again-"));
    CHECK(has(as_recorded, "and is 0.0011 (recipe.yaml:9:30)"));
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--recipe", "recipe.yaml"},
                                                std::vector<std::string>{"--set", "optimizer.lr=0.0011"}}) {
    std::vector<std::string> command = {"reproduce", "again"};
    command.insert(command.end(), words.begin(), words.end());
    const auto result = test.roux(command);
    INFO(result.output);
    CHECK(result.status == 1);
    CHECK(has(result, "the cause:\n  optimizer.lr was 0.001 ("));
    CHECK(has(result, "lr at step 1 is 0.0011"));
    CHECK(!has(result, "data.train was"));
  }
}

TEST_CASE("another thread count is a cause that is named", "[ranks][reproduce]") {
  const Fixture test;
  const auto result = test.roux({"reproduce", "again"}, "1");
  INFO(result.output);
  CHECK(has(result, "threads was 2 and is 1"));
  // Whether the sums differ is the library's business; if they do, the cause is told once more beside the difference.
  CHECK((result.status == 0 || has(result, "not reproduced")));
}

TEST_CASE("a recorded recipe that was edited afterwards is the cause that is named", "[ranks][reproduce]") {
  const Fixture test;
  for (const auto& entry : fs::directory_iterator(test.path() / "runs")) {
    if (!entry.is_directory()) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path() / "resolved.json").rdbuf();
    std::string edited = text.str();
    REQUIRE(edited.find("\"lr\": 0.001") != std::string::npos);
    edited.replace(edited.find("\"lr\": 0.001"), 11, "\"lr\": 0.002");
    std::ofstream(entry.path() / "resolved.json") << edited;
  }
  const auto result = test.roux({"reproduce", "again"});
  INFO(result.output);
  CHECK(result.status == 1);
  CHECK(has(result, "/resolved.json (hash of its values) was "));
  CHECK(has(result, "edited after the run"));
}

TEST_CASE("a run that recorded nothing of itself, or is not there, is refused", "[ranks][reproduce]") {
  const Fixture test;
  CHECK(test.roux({"reproduce", "nothing"}).status == 2);
  for (const auto& entry : fs::directory_iterator(test.path() / "runs")) {
    if (entry.is_directory()) fs::remove(entry.path() / "capsule.json");
  }
  const auto result = test.roux({"reproduce", "again"});
  INFO(result.output);
  CHECK(result.status == 2);
  CHECK(has(result, "cannot be reproduced"));
}
