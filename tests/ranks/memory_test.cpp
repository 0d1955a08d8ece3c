// Memory that does not suffice: training.max_memory, training.auto_micro_batch, and a limit of the system's.

#include <signal.h>

#include <catch2/catch.hpp>

#include "runner/core/clock.h"
#include "runner/store/run_reader.h"
#include "tests/support/process/equal_checkpoints.h"
#include "tests/support/process/test_run.h"

namespace {

using tests::TestRun;

constexpr const char* kRecipe = R"(
run_name: large
seed: 3
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 64, dropout: 0.1}
data:
  train: {type: text, path: corpus.txt, split: ":90%", max_seq_len: 64}
  val: {type: text, path: corpus.txt, split: "90%:", max_seq_len: 64}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 6, micro_batch_size: 16, gradient_accumulation_steps: 2}
eval: {eval_steps: 3}
checkpoint: {save_steps: 2}
logging_steps: 1
)";

/// Plain SGD, which some of these train with, remembers nothing.
const std::vector<std::string> kFiles = {"model", "random_states_0"};

struct Fixture : TestRun {
  Fixture() : TestRun(kRecipe) { write_corpus(40'000); }
  std::vector<runner::store::EventRow> out_of_memory_events() const {
    std::vector<runner::store::EventRow> found;
    const auto details = runner::store::read_details(run_dir().string());
    for (const auto& event : details.value().events) {
      if (event.kind == "out_of_memory") found.push_back(event);
    }
    return found;
  }
};

std::int64_t peak_of(const TestRun& test) {
  const auto run = runner::store::find_run((test.path() / "runs").string(), "last", runner::core::system_clock());
  return run.value().summary.find("peak_tensor_bytes")->as_integer();
}

}  // namespace

TEST_CASE("a step that does not fit fails with figures and ways out", "[ranks][memory]") {
  const Fixture test;
  const auto ended = test.run({"training.max_memory=10MB"});
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(ended.output.find("error: step 1 does not fit into memory with micro-batches of 16 samples: max_memory is "
                          "10.0 MB: tensors use ") != std::string::npos);
  CHECK(ended.output.find("hint: a smaller micro_batch_size at the same global_batch_size, or "
                          "training.auto_micro_batch: halve") != std::string::npos);
}

TEST_CASE("a micro-batch that was halved gives what the smaller one gives from the start", "[ranks][memory]") {
  const Fixture halved, small;
  // sgd keeps nothing beside the parameters: what fits in the first step fits in all of them.
  const std::string sgd = "optimizer={type: sgd, lr: 0.1}";
  const auto ended = halved.run({"training.max_memory=10MB", "training.auto_micro_batch=halve", sgd});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  REQUIRE(halved.out_of_memory_events().size() == 1);
  CHECK(halved.out_of_memory_events()[0].data.find("from")->as_integer() == 16);
  CHECK(halved.out_of_memory_events()[0].data.find("to")->as_integer() == 8);
  const auto alone = small.run(
      {"training.micro_batch_size=8", "training.gradient_accumulation_steps=4", "eval.micro_batch_size=16", sgd});
  REQUIRE(alone.status == 0);
  tests::check_equal_checkpoints(halved, small, "step-000006", kFiles);
}

TEST_CASE("a size that does not divide the batch leaves the batch as it is", "[ranks][memory]") {
  const Fixture shrunk, small;
  const auto ended = shrunk.run({"training.max_memory=11MB", "training.auto_micro_batch=minus:5"});
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  REQUIRE_FALSE(shrunk.out_of_memory_events().empty());
  // Windows of 32 samples in passes of 11 or 6: the same as one micro-batch of 32 but for rounding.
  const auto of = [](const Fixture& test) {
    return runner::store::read_series(test.run_dir().string(), "loss").value();
  };
  REQUIRE(
      small.run({"training.micro_batch_size=32", "training.gradient_accumulation_steps=1", "model.dropout=0"}).status ==
      0);
  const Fixture plain;
  REQUIRE(plain.run({"training.max_memory=11MB", "training.auto_micro_batch=minus:5", "model.dropout=0"}).status == 0);
  REQUIRE_FALSE(plain.out_of_memory_events().empty());
  REQUIRE(of(plain).size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(of(plain)[i].value == Approx(of(small)[i].value).epsilon(1e-4));
}

TEST_CASE("a resumed run keeps the micro-batch that fits", "[ranks][memory][resume]") {
  const std::vector<std::string> settings = {"training.max_memory=10MB", "training.auto_micro_batch=halve"};
  const Fixture straight, broken;
  REQUIRE(straight.run(settings).status == 0);
  {
    tests::Process process(broken.command(settings), TestRun::environment(), broken.path().string());
    REQUIRE(process.wait_for("step-000002"));
    process.send(SIGKILL);
    if (process.wait() == 0) return;  // it was faster than the signal, and there is nothing to resume
  }
  const auto tried = broken.out_of_memory_events().size();
  const auto ended = broken.run(settings);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK(broken.out_of_memory_events().size() == tried);  // nothing is tried again
  tests::check_equal_checkpoints(straight, broken, "step-000006", kFiles);
}

TEST_CASE("an evaluation that does not fit shrinks as a step does", "[ranks][memory]") {
  const Fixture test, refused;
  const std::vector<std::string> settings = {"training.max_memory=12MB", "training.micro_batch_size=2",
                                             "training.gradient_accumulation_steps=16", "eval.micro_batch_size=64"};
  const auto without = refused.run(settings);
  INFO(without.output);
  CHECK(without.status == 1);
  CHECK(
      without.output.find("error: the evaluation of data.val after step 3 does not fit into memory with micro-batches "
                          "of 64 samples") != std::string::npos);
  std::vector<std::string> more = settings;
  more.push_back("training.auto_micro_batch=shrink");
  const auto ended = test.run(more);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  REQUIRE_FALSE(test.out_of_memory_events().empty());
  CHECK(test.out_of_memory_events()[0].data.find("to")->as_integer() == 57);
}

TEST_CASE("when nothing fits, the figures say why", "[ranks][memory]") {
  const Fixture test;
  const auto ended = test.run({"training.max_memory=2MB", "training.auto_micro_batch=halve"});
  INFO(ended.output);
  CHECK(ended.status == 1);
  CHECK(ended.output.find("with micro-batches of 1 sample: max_memory is 2.0 MB") != std::string::npos);
  CHECK(ended.output.find("weights, gradients and optimizer state need ") != std::string::npos);
  CHECK(test.out_of_memory_events().size() == 4);

  const Fixture tiny;
  const auto at_once = tiny.run({"training.max_memory=500KB"});
  INFO(at_once.output);
  CHECK(at_once.status == 2);
  CHECK(at_once.output.find("max_memory is 500KB, but the model's weights and their gradients alone take") !=
        std::string::npos);
}

TEST_CASE("the copies of an asynchronous save count towards max_memory", "[ranks][memory]") {
  const std::string notice = "no memory for a copy of the state: saves are synchronous";
  const Fixture waits, roomy, tight;
  REQUIRE(waits.run({"training.max_memory=1GB", "checkpoint.async_save=false"}).status == 0);
  const std::int64_t steps_take = peak_of(waits);
  const auto checkpoint = static_cast<std::int64_t>(waits.saved("step-000006", "model.safetensors").size() +
                                                    waits.saved("step-000006", "optimizer.safetensors").size());

  const auto copied = roomy.run({"training.max_memory=1GB"});
  INFO(copied.output);
  REQUIRE(copied.status == 0);
  CHECK(copied.output.find(notice) == std::string::npos);
  CHECK(peak_of(roomy) >= steps_take + checkpoint * 9 / 10);  // a step's own peak is not the same to the last byte

  const auto refused = tight.run({"training.max_memory=" + std::to_string(steps_take + checkpoint / 2)});
  INFO(refused.output);
  REQUIRE(refused.status == 0);
  CHECK(refused.output.find(notice) != std::string::npos);
  tests::check_equal_checkpoints(waits, roomy, "step-000006", kFiles);
  tests::check_equal_checkpoints(waits, tight, "step-000006", kFiles);
}

TEST_CASE("a step that the copies of a save left too little for gets their memory", "[ranks][memory][resume]") {
  // An epoch is a batch of 4096 samples and one of a single sample, which is all that a resumed run has seen when it
  // takes its first copies.
  struct Uneven : TestRun {
    Uneven()
        : TestRun(R"(
run_name: uneven
model: {type: mlp, hidden: [1024, 1024], out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 4097}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 4, micro_batch_size: 4096}
checkpoint: {save_steps: 1}
)") {}
  };
  const Uneven straight, resumed;
  REQUIRE(straight.run({"training.max_memory=1GB", "checkpoint.async_save=false"}).status == 0);
  const auto checkpoint = static_cast<std::int64_t>(straight.saved("step-000001", "model.safetensors").size());
  const std::string limit = "training.max_memory=" + std::to_string(peak_of(straight) + checkpoint / 2);
  REQUIRE(resumed.run({limit, "launch.time_limit=0.01s", "launch.save_margin=0s"}).status == 75);  // after one step
  const auto ended = resumed.run({limit});
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.output.find("released the async-save buffers") != std::string::npos);
  CHECK((straight.saved("step-000004", "model.safetensors") == resumed.saved("step-000004", "model.safetensors")));
}

TEST_CASE("what the system refuses shrinks the micro-batch as max_memory does", "[ranks][memory]") {
  // 4096 activations a sample, 330 MB for all of them, several times over; the program itself needs half of the limit.
  const Fixture test;
  test.write("wide.yaml", R"(
run_name: wide
model: {type: mlp, hidden: [4096], out_features: 1}
data: {train: {type: synthetic, task: regression, num_samples: 20000}}
loss: mse
optimizer: {type: sgd, lr: 1.0e-3}
training: {max_steps: 1, micro_batch_size: 20000, auto_micro_batch: halve}
)");
  const std::string limited = "ulimit -v 1400000 && exec \"$0\" run wide.yaml";
  tests::Process process({"bash", "-c", limited, tests::roux_program()}, TestRun::environment(), test.path().string());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 0);
  REQUIRE_FALSE(test.out_of_memory_events().empty());
  CHECK(test.out_of_memory_events()[0].data.find("from")->as_integer() == 20000);
}

TEST_CASE("a step that does not fit into one of the processes is made again by all, with smaller micro-batches",
          "[ranks][memory][processes]") {
  // Lines of 8 bytes, and in the second micro-batch, which rank 1 has, two of 200.
  std::string lines;
  for (int i = 0; i < 64; ++i) {
    lines += std::string(i == 2 || i == 3 ? 200 : 8, static_cast<char>('a' + i % 26)) + "\n";
  }
  const std::vector<std::string> settings = {"data={train: {type: text_lines, path: lines.txt, max_seq_len: 256}}",
                                             "loader.shuffle=false",
                                             "model={type: gpt, n_layer: 2, n_head: 2, n_embd: 32}",
                                             "optimizer={type: sgd, lr: 0.1}",
                                             "eval.eval_steps=null",
                                             "training.fused_kernels=false",
                                             "training.micro_batch_size=2",
                                             "training.gradient_accumulation_steps=null",
                                             "training.global_batch_size=8"};
  const Fixture alone, together;
  alone.write("lines.txt", lines);
  together.write("lines.txt", lines);
  const auto one = alone.run(settings);
  INFO(one.output);
  REQUIRE(one.status == 0);
  auto limited = settings;
  limited.push_back(GENERATE("accumulation.sync_each_batch=false", "accumulation.sync_each_batch=true"));
  limited.insert(limited.end(),
                 {"launch.num_processes=2", "training.max_memory=3MB", "training.auto_micro_batch=halve"});
  const auto ended = together.run(limited);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  REQUIRE(together.out_of_memory_events().size() == 1);
  CHECK(together.out_of_memory_events()[0].data.find("to")->as_integer() == 1);
  CHECK(together.out_of_memory_events()[0].data.find("error")->as_string().starts_with("rank 1: max_memory is 3.0 MB"));
  const auto losses_of = [](const Fixture& test) {
    return runner::store::read_series(test.run_dir().string(), "loss").value();
  };
  const auto expected = losses_of(alone), found = losses_of(together);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].value == Approx(expected[i].value).epsilon(1e-5));
}

TEST_CASE("an evaluation that does not fit shrinks on all processes", "[ranks][memory][processes]") {
  const std::vector<std::string> settings = {"model.dropout=0",
                                             "training.micro_batch_size=2",
                                             "training.gradient_accumulation_steps=4",
                                             "training.global_batch_size=16",
                                             "eval.micro_batch_size=64",
                                             "launch.num_processes=2"};
  const Fixture free, limited;
  REQUIRE(free.run(settings).status == 0);
  auto tight = settings;
  tight.insert(tight.end(), {"training.max_memory=12MB", "training.auto_micro_batch=halve"});
  const auto ended = limited.run(tight);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  CHECK_FALSE(limited.out_of_memory_events().empty());
  const auto loss_of = [](const Fixture& test) {
    return runner::store::read_series(test.run_dir().string(), "val/loss").value();
  };
  REQUIRE(loss_of(limited).size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(loss_of(limited)[i].value == Approx(loss_of(free)[i].value).epsilon(1e-5));
  }
}
