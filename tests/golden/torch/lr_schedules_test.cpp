// The schedules against the published formulas and torch.optim.lr_scheduler, topic lr_schedules.

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "components/lr_scheduler/lr_scheduler.h"
#include "tests/support/blocks.h"
#include "tests/support/golden.h"
#include "tests/support/torch_schedules.h"

using tests::golden::Case;
using tests::golden::Json;

namespace {

constexpr int kNoEnd = std::numeric_limits<int>::max();

/// What the factors multiply.
double base_of(const Json& in) {
  for (const char* key : {"base_lr", "max_lr", "warmup_max_lr"}) {
    if (in.contains(key)) return in.at(key);
  }
  if (in.at("args").contains("max_lr")) return in.at("args").at("max_lr");
  return in.at("optimizer_lr");
}

/// The recipe block for a case, or nothing when there is no such schedule here.
std::optional<Json> block_for(const Case& golden) {
  const Json& in = golden.input;
  if (golden.kind == "schedule") {
    const std::string name = in.at("name");
    if (name == "constant") return Json{{"type", "constant"}};
    if (name == "constant_with_warmup") return Json{{"type", "constant"}, {"warmup_steps", in.at("warmup_steps")}};
    if (name == "inverse_sqrt") {
      Json block{{"type", name}, {"warmup_steps", in.at("warmup_steps")}};
      if (in.contains("timescale")) block["timescale"] = in.at("timescale");
      return block;
    }
    Json block{{"type", name}, {"total_steps", in.at("total_steps")}, {"warmup_steps", in.at("warmup_steps")}};
    if (name == "linear") return block;
    if (name == "cosine") {
      block["hold_floor"] = false;  // transformers goes on along the wave
      block["num_cycles"] = in.value("num_cycles", 0.5);
      return block;
    }
    if (name == "cosine_with_restarts") {
      block["num_cycles"] = in.value("num_cycles", 1.0);
      return block;
    }
    if (name == "polynomial") {
      block["power"] = in.value("power", 1.0);
      block["min_lr_ratio"] = in.value("lr_end", 1e-7) / in.at("base_lr").get<double>();
      return block;
    }
  }
  if (golden.kind == "torch_scheduler") {
    return tests::torch_schedule(in.at("cls"), in.at("args"), in.at("optimizer_lr"));
  }
  if (golden.kind == "megatron") {
    const std::string style = in.at("lr_decay_style");
    if (style == "WSD") return std::nullopt;
    Json block{{"type", "megatron"},
               {"decay_style", style},
               {"total_steps", in.at("lr_decay_iters")},
               {"samples_per_step", in.at("global_batch_size")},
               {"init_lr_ratio", in.value("lr_warmup_init", 0.0) / base_of(in)},
               {"min_lr_ratio", in.at("min_lr").get<double>() / base_of(in)}};
    const bool by_ratio = !in.at("lr_warmup_fraction").is_null();
    block[by_ratio ? "warmup_ratio" : "warmup_steps"] = in.at(by_ratio ? "lr_warmup_fraction" : "lr_warmup_iters");
    return block;
  }
  if (golden.kind == "deepspeed") {
    const std::string name = in.at("cls");
    Json block{{"type", "deepspeed"},
               {"decay", name == "WarmupLR"        ? "constant"
                         : name == "WarmupDecayLR" ? "linear"
                                                   : "cosine"},
               {"total_steps", in.value("total_num_steps", in.at("n"))},
               {"warmup_steps", in.at("warmup_num_steps")},
               {"warmup_type", in.value("warmup_type", "log")},
               {"warmup_min_ratio", in.value("warmup_min_lr", 0.0) / base_of(in)}};
    if (name == "WarmupCosineLR") {
      block["warmup_min_ratio"] = in.value("warmup_min_ratio", 0.0);
      block["cos_min_ratio"] = in.value("cos_min_ratio", 1e-4);
    }
    return block;
  }
  return std::nullopt;
}

std::string name_of(const Case& golden) {
  for (const char* key : {"name", "cls", "lr_decay_style"}) {
    if (!golden.input.contains(key)) continue;
    const Json args = golden.input.value("args", Json::object());
    return golden.input.at(key).get<std::string>() +
           (args.contains("mode") ? " " + args["mode"].get<std::string>() : "");
  }
  return "scheduler";
}

}  // namespace

TEST_CASE("schedules agree with the published ones", "[golden][lr_scheduler]") {
  tests::golden::Coverage coverage("lr_schedules");
  for (const Case& golden : tests::golden::read_topic("lr_schedules")) {
    if (golden.kind == "wrapped_stepping") continue;  // the loop's; read by the test of its stepping
    std::optional<Json> block = block_for(golden);
    if (block && golden.kind == "schedule" && block->value("warmup_steps", 0) > block->value("total_steps", kNoEnd)) {
      block.reset();  // refused: such a schedule never gets to its end
    }
    if (!block) {
      coverage.not_covered(golden.kind, name_of(golden));
      continue;
    }
    const auto node = tests::block("lr_scheduler", block->dump());
    const auto scheduler = components::lr_scheduler::build(node, {});
    const double base = base_of(golden.input);
    std::vector<double> rates, momenta;
    for (int step = 0; step < golden.input.at("n").get<int>(); ++step) {
      rates.push_back(base * scheduler->factor(step));
      momenta.push_back(scheduler->momentum(step).value_or(-1.0));
      if (block->at("type") != "plateau") continue;
      const double metric = golden.input.at("args").at("metrics").at(static_cast<std::size_t>(step));
      scheduler->on_evaluation([&metric](const std::string&) { return &metric; });
    }
    if (golden.expected.contains("momentum") && !scheduler->momentum(0)) {
      coverage.not_covered(golden.kind, "the momentum of " + golden.input.at("cls").get<std::string>());
    } else if (golden.expected.contains("momentum")) {
      CHECK(tests::golden::differences(golden.name + " momentum", momenta, golden.expected.at("momentum"),
                                       {1e-6, 1e-12}) == "");
    }
    // 1e-6 of each rate; the README's 1e-7 absolute would be a tenth of some of them.
    CHECK(tests::golden::differences(golden.name, rates, golden.expected.at("lr"), {1e-6, 1e-12}) == "");
    coverage.checked(golden.kind);
  }
  coverage.finish();
}
