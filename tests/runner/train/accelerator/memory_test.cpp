// What of another device can be reached, how much memory it needs, and what happens when there is none.

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <csignal>
#include <string>
#include <vector>

#include "components/tensor/tensors.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/platform/files.h"
#include "runner/resolve/recipe.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch/device_training_torch.h"
#include "tests/support/torch/pretended_accelerator.h"
#include "tests/support/torch/recipe_experiment_torch.h"

namespace runner::train {
namespace {

namespace accelerator = tests::accelerator;
using namespace tests::device_training;

}  // namespace

TEST_CASE("a tensor on the wrong device is refused", "[.][accelerator]") {
  accelerator::install();
  const at::Tensor here = at::ones({4}), there = here.to(c10::Device(kFirst)),
                   elsewhere = here.to(c10::Device(kSecond));
  CHECK_THROWS_WITH(there + here, Catch::Contains("pretend:0 and cpu"));
  CHECK_THROWS_WITH(there + elsewhere, Catch::Contains("pretend:0 and pretend:1"));
  CHECK((there + 1).device() == there.device());

  const tests::TempDir folder;
  const Trained planted = build_on(kFirst, "recipes/smoke/spirals.yaml", {"training.max_steps=1"});
  const auto parameters = planted.experiment->model->parameters();
  parameters.front().tensor.set_data(parameters.front().tensor.detach().cpu());
  const auto run = tests::new_run(folder.path());
  CHECK_THROWS_WITH(tests::train_quietly(*planted.experiment, *run), Catch::Contains("on the same device"));
}

TEST_CASE("the CPU cannot read another device's memory", "[.][accelerator]") {
  accelerator::install();
  const at::Tensor there = at::ones({4}).to(c10::Device(kFirst));
  const auto* const value = static_cast<const float*>(there.const_data_ptr());
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    const volatile float read = *value;
    _exit(read > 0 ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
  CHECK(there.cpu()[0].item<float>() == 1.0F);
}

TEST_CASE("a plan's memory is that of a training on another device", "[.][accelerator]") {
  struct Case {
    const char *name, *recipe;
    std::vector<std::string> sets;
  };
  const std::string model = "model={type: gpt, n_layer: 2, n_head: 4, n_embd: 256}", samples = "data.train.stride=4",
                    words = "model={type: gpt, n_layer: 1, n_head: 4, n_embd: 64, vocab_size: 20000}";
  const std::vector<Case> cases = {
      {"gpt", "gpt", {model, samples, "training.micro_batch_size=16"}},
      {"llama",
       "gpt",
       {"model={type: llama, n_layer: 2, n_head: 4, n_kv_head: 2, n_embd: 256, mlp_width: 512}", samples,
        "training.micro_batch_size=16"}},
      {"llama, all heads",
       "gpt",
       {"model={type: llama, n_layer: 2, n_head: 4, n_embd: 256, mlp_width: 512}", samples,
        "training.micro_batch_size=64"}},
      {"gpt in bfloat16", "gpt", {model, samples, "training.micro_batch_size=16", "precision.mode=bf16-mixed"}},
      {"gpt, accumulated",
       "gpt",
       {model, samples, "training.micro_batch_size=8", "training.gradient_accumulation_steps=3"}},
      {"gpt, recomputed",
       "gpt",
       {model, samples, "training.micro_batch_size=32", "activation_checkpointing.mode=full"}},
      {"many words", "gpt", {words, samples, "training.micro_batch_size=32"}},
      {"many words in bfloat16", "gpt", {words, samples, "training.micro_batch_size=32", "precision.mode=bf16-mixed"}},
      {"images", "images", {"training.micro_batch_size=64"}},
      {"wide samples, accumulated",
       "images",
       {"model={type: sequential, layers: [flatten, {type: linear, out_features: 4}]}", "data.train.height=64",
        "data.train.width=64", "data.val.height=64", "data.val.width=64", "training.micro_batch_size=64",
        "training.gradient_accumulation_steps=8"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const tests::TempDir folder;
      const std::string path = std::string("recipes/smoke/") + c.recipe + ".yaml";
      const auto sets = with(c.sets, {"training.max_steps=2", "training.max_epochs=null", "lr_scheduler=constant"});
      const double planned = planned_bytes(path, with(sets, {"device=cuda"}));
      accelerator::set_memory_limit(0);
      const std::int64_t before = accelerator::memory_peak();
      train_on(kFirst, path, sets, folder);
      const auto taken = static_cast<double>(accelerator::memory_peak() - before);
      INFO(planned << " planned, " << taken << " taken");
      CHECK(std::fabs(planned - taken) <= 0.1 * taken);
    }
  }
}

TEST_CASE("another device never holds all logits in float32", "[.][accelerator]") {
  const auto sets = with(
      kTwentySteps, {"model={type: gpt, n_layer: 1, n_head: 4, n_embd: 64, vocab_size: 20000}", "data.train.stride=4",
                     "training.micro_batch_size=32", "training.max_steps=3", "lr_scheduler=constant"});
  const std::string path = "recipes/smoke/gpt.yaml";
  for (const std::string precision : {"32-true", "bf16-mixed"}) {
    for (const std::string loss : {"cross_entropy", "{type: cross_entropy, label_smoothing: 0.1}"}) {
      DYNAMIC_SECTION(precision << ", " << loss) {
        const tests::TempDir folder;
        const auto all = with(sets, {"precision.mode=" + precision, "loss=" + loss});
        const Trained cpu = train_on(kCpu, path, all, folder);
        accelerator::set_memory_limit(0);
        const Trained device = train_on(kFirst, path, all, folder);
        check_close(cpu, device, precision == "32-true" ? 1e-5 : 2e-2);
        const std::int64_t rows = 32 * device.experiment->recipe.at("data.train.max_seq_len").as_integer();
        CHECK(rows * 20000 * 4 > 20'000'000);
        CHECK(accelerator::largest_block() < rows * 20000 * 4);
      }
    }
  }
}

TEST_CASE("a plan for another device leaves out the masks of the CPU's attention", "[.][accelerator]") {
  const std::string gpt = "model={type: gpt, n_layer: 2, n_head: 8, n_embd: 64, dropout: ";
  const auto planned = [&gpt](const std::string& device, const std::string& dropout) {
    return planned_bytes("recipes/smoke/gpt.yaml",
                         {"device=" + device, gpt + dropout + "}", "data.train.max_seq_len=256", "data.train.stride=4",
                          "training.micro_batch_size=8", "training.max_steps=2", "training.max_epochs=null",
                          "training.fused_kernels=false", "lr_scheduler=constant"});
  };
  // The factors of one element of the stream each: of the embedding and of two branches in both blocks, in float32.
  const double factors = 5.0 * 8 * 256 * 64 * 4, attention = 2.0 * 8 * 8 * 256 * 256 * 4;
  CHECK(planned("cuda", "0.1") - planned("cuda", "0") <= 2 * factors);
  CHECK(planned("cpu", "0.1") - planned("cpu", "0") >= attention);
}

TEST_CASE("another device's memory runs out", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = "recipes/smoke/images.yaml";
  const std::vector<std::string> plain = {"training.max_steps=3", "training.micro_batch_size=32"};
  accelerator::install();
  accelerator::set_memory_limit(0);
  const std::size_t metrics = train_on(kFirst, path, plain, folder).metrics.size();
  const std::int64_t peak = accelerator::memory_peak();
  struct Restore {
    ~Restore() { accelerator::set_memory_limit(0); }
  } restore;
  accelerator::set_memory_limit(peak / 2);
  SECTION("and the error says so") {
    CHECK_THROWS_WITH(train_on(kFirst, path, plain, folder), Catch::Contains("does not fit into memory"));
  }
  SECTION("and smaller micro-batches are tried") {
    const Trained tight = train_on(kFirst, path, with(plain, {"training.auto_micro_batch=halve"}), folder);
    CHECK(accelerator::memory_peak() <= peak / 2);
    CHECK(tight.metrics.size() == metrics);
  }
}

TEST_CASE("an error of another device ends the run with its words", "[.][accelerator]") {
  const tests::TempDir folder;
  const std::string path = folder / "spirals.yaml";
  core::write_file_atomic(path, kSpirals).value();
  const Trained planted = build_on(kFirst, path, {"checkpoint.save_steps=1"});
  const auto run = tests::new_run(folder.path());
  accelerator::fail_after(1500, "the device is lost");
  CHECK_THROWS_WITH(tests::train_quietly(*planted.experiment, *run), Catch::Contains("the device is lost"));
  accelerator::fail_after(0, "");
  CHECK(artifact::list_checkpoints(run->run_dir() + "/checkpoints").size() >= 1);
}

}  // namespace runner::train
