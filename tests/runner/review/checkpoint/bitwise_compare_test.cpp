// What prove-resume and reproduce stand on: that two runs which differ in one bit are told apart, by name.

#include "runner/review/checkpoint/bitwise_compare.h"

#include <catch2/catch.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::review;
using runner::core::Node;
using store_test::FixedClock;
using store_test::OutputDir;
namespace artifact = runner::artifact;
namespace store = runner::store;

struct Contents {
  double loss_at_2 = 1.5;
  double tokens_per_s = 1000;
  std::optional<double> processor = {};
  std::string text = "hello";
  float weight = 0.5F;
  std::string trainer = R"({"counters": {"progress": {"step": 3, "seconds": 1.0}}})";
  bool with_step_2 = true;
  std::int64_t last_step = 3;
};

std::string make_run(const OutputDir& output, const FixedClock& clock, const Contents& contents) {
  auto writer = store_test::create(store_test::new_run(output), clock);
  for (std::int64_t step = 1; step <= contents.last_step; ++step) {
    if (step == 2 && !contents.with_step_2) continue;
    store_test::log(*writer, "loss", step, step == 2 ? contents.loss_at_2 : 2.0 / static_cast<double>(step));
    store_test::log(*writer, "tokens_per_s", step, contents.tokens_per_s);
  }
  if (contents.processor) store_test::log(*writer, "cpu_utilization_percentage", 2, *contents.processor, "system");
  store_test::log(*writer, "grad_norm", 1, std::numeric_limits<double>::quiet_NaN());
  Node sample = Node::mapping();
  sample.set("name", Node::string("sample"));
  sample.set("text", Node::string(contents.text));
  writer->event("text", 3, sample);

  const auto draft = artifact::CheckpointWriter::begin(writer->run_dir() + "/checkpoints", 3, 0).value();
  const std::vector<float> values = {1.0F, contents.weight};
  draft->add_safetensors("model.safetensors", {{"h.0.weight", "F32", {2}, values.data(), 8}}, {}).value();
  draft->add_text("trainer.json", contents.trainer).value();
  artifact::ManifestFields fields;
  fields.step = 3;
  draft->commit(std::move(fields), nullptr, 1).value();
  const std::string run_dir = writer->run_dir();
  writer->finish(store::RunStatus::kFinished, "done");
  return run_dir;
}

}  // namespace

TEST_CASE("a difference of one bit between runs is reported with step and name", "[cli][bitwise_compare]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string straight = make_run(output, clock, {});
  struct Case {
    const char* name;
    Contents contents;
    std::vector<std::string> found;
  };
  const Case cases[] = {
      {"the same", {}, {}},
      {"another speed", {.tokens_per_s = 7}, {}},
      {"another use of the machine", {.processor = 99}, {}},
      {"another time", {.trainer = R"({"counters": {"progress": {"step": 3, "seconds": 9.0}}})"}, {}},
      {"one bit of a metric", {.loss_at_2 = 1.5000000000000002}, {"loss at step 2 is 1.5000000000000002, and was 1.5"}},
      {"a point is missing", {.with_step_2 = false}, {"loss at step 2 is missing; was 1.5"}},
      {"a point too many", {.last_step = 4}, {"loss at step 4 is 0.5; missing in the original"}},
      {"another text",
       {.text = "hullo"},
       {R"(the text at step 3 is {"name": "sample", "text": "hullo"}, and was {"name": "sample", "text": "hello"})"}},
      {"one bit of a tensor",
       {.weight = 0.50000006F},
       {"h.0.weight[1] of model.safetensors is 0.50000006 in a and 0.5 in b; 1 of 2 elements differ, by 5.96e-08 at "
        "most in the checkpoint of step 3 (a: this run, b: the first one)"}},
      {"a counter",
       {.trainer = R"({"counters": {"progress": {"step": 4, "seconds": 1.0}}})"},
       {"counters.progress.step of trainer.json is 4 in a and 3 in b in the checkpoint of step 3 (a: this run, b: the "
        "first one)"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const auto difference = compare_runs(straight, make_run(output, clock, c.contents)).value();
      CHECK(difference.found == c.found);
      CHECK(difference.checkpoint_step == 3);
      CHECK(difference.tensors == 1);
      CHECK(difference.points >= 3);
    }
  }
}

TEST_CASE("what a stopped run never reached is no difference", "[cli][bitwise_compare]") {
  const OutputDir output;
  const FixedClock clock;
  const std::string stopped = make_run(output, clock, {});
  const std::string whole = make_run(output, clock, {.last_step = 6});
  CHECK(compare_runs(stopped, whole, {.to_the_end = false}).value().found.empty());
  CHECK(!compare_runs(stopped, whole).value().found.empty());
}
