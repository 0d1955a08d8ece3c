// The schedules against the published formulas and torch.optim.lr_scheduler, topic lr_schedules.

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/lr_scheduler/lr_scheduler.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"

using tests::golden::Case;
using tests::golden::Json;

namespace {

/// The recipe block for a case, or nothing when there is no such schedule here.
std::optional<Json> block_for(const Case& golden) {
  const Json& in = golden.input;
  if (golden.kind == "schedule") {
    const std::string name = in.at("name");
    if (name == "constant") return Json{{"type", "constant"}};
    if (name == "constant_with_warmup") return Json{{"type", "constant"}, {"warmup_steps", in.at("warmup_steps")}};
    if (name == "linear" || (name == "cosine" && in.value("num_cycles", 0.5) == 0.5)) {
      Json block{{"type", name}, {"total_steps", in.at("total_steps")}, {"warmup_steps", in.at("warmup_steps")}};
      if (name == "cosine") block["hold_floor"] = false;  // transformers goes on along the wave
      return block;
    }
  }
  if (golden.kind == "torch_scheduler") {
    const std::string name = in.at("cls");
    const Json& args = in.at("args");
    if (name == "CosineAnnealingLR") {
      const double floor = args.value("eta_min", 0.0) / in.at("optimizer_lr").get<double>();
      return Json{
          {"type", "cosine"}, {"total_steps", args.at("T_max")}, {"min_lr_ratio", floor}, {"hold_floor", false}};
    }
    if (name == "PolynomialLR" && args.value("power", 1.0) == 1.0) {
      return Json{{"type", "linear"}, {"total_steps", args.at("total_iters")}};
    }
    if (name == "LinearLR" && args.value("start_factor", 1.0 / 3.0) == 1.0) {
      return Json{
          {"type", "linear"}, {"total_steps", args.at("total_iters")}, {"min_lr_ratio", args.value("end_factor", 1.0)}};
    }
  }
  return std::nullopt;
}

std::string name_of(const Case& golden) {
  for (const char* key : {"name", "cls", "lr_decay_style"}) {
    if (golden.input.contains(key)) return golden.input.at(key).get<std::string>();
  }
  return "scheduler";
}

}  // namespace

TEST_CASE("schedules agree with the published ones", "[golden][lr_scheduler]") {
  tests::golden::Coverage coverage("lr_schedules");
  for (const Case& golden : tests::golden::read_topic("lr_schedules")) {
    if (golden.kind == "wrapped_stepping") continue;  // the loop's; read by the test of its stepping
    const std::optional<Json> block = block_for(golden);
    if (!block) {
      coverage.not_covered(golden.kind, name_of(golden));
      continue;
    }
    const auto node = tests::block("lr_scheduler", block->dump());
    const auto scheduler = components::lr_scheduler::build(node, {});
    const double base = golden.input.contains("base_lr") ? golden.input.at("base_lr") : golden.input.at("optimizer_lr");
    std::vector<double> rates;
    for (int step = 0; step < golden.input.at("n").get<int>(); ++step) rates.push_back(base * scheduler->factor(step));
    // 1e-6 of each rate; the README's 1e-7 absolute would be a tenth of some of them.
    CHECK(tests::golden::differences(golden.name, rates, golden.expected.at("lr"), {1e-6, 1e-12}) == "");
    coverage.checked(golden.kind);
  }
  CHECK(coverage.checked_count() > 0);
}
