#include "tests/support/torch_schedules.h"

namespace tests {
namespace {

using golden::Json;

Json held(double factor) {
  return {{"type", "ramp"}, {"total_steps", 1}, {"start_factor", factor}, {"end_factor", factor}};
}

Json chain(const Json& schedulers, const Json& milestone) {
  return {{"type", "chained"}, {"schedulers", schedulers}, {"milestones", Json::array({milestone})}};
}

/// Straight up and down again, as a share of `max_lr`; with `triangular2` each wave is half as high as the one before.
Json waves(const Json& args) {
  constexpr int kWaves = 64;  // more than any case has
  const int up = args.value("step_size_up", 2000);
  const Json given_down = args.value("step_size_down", Json());
  const int down = given_down.is_null() ? up : given_down.get<int>();
  const double floor = args.at("base_lr").get<double>() / args.at("max_lr").get<double>();
  Json block{{"type", "chained"}, {"schedulers", Json::array()}, {"milestones", Json::array()}};
  double height = 1.0 - floor;
  int end = 0;
  const auto ramp = [&](int steps, double from, double to) {
    if (end > 0) block["milestones"].push_back(end);
    block["schedulers"].push_back(
        {{"type", "ramp"}, {"total_steps", steps}, {"start_factor", from}, {"end_factor", to}});
    end += steps;
  };
  for (int wave = 0; wave < kWaves; ++wave) {
    ramp(up, floor, floor + height);
    ramp(down, floor + height, floor);
    if (args.value("mode", "triangular") == "triangular2") height /= 2;
  }
  return block;
}

}  // namespace

std::optional<Json> torch_schedule(const std::string& name, const Json& args, double optimizer_lr) {
  if (name == "CosineAnnealingLR") {
    const double floor = args.value("eta_min", 0.0) / optimizer_lr;
    return Json{{"type", "cosine"}, {"total_steps", args.at("T_max")}, {"min_lr_ratio", floor}, {"hold_floor", false}};
  }
  if (name == "PolynomialLR") {
    return Json{
        {"type", "polynomial"}, {"total_steps", args.value("total_iters", 5)}, {"power", args.value("power", 1.0)}};
  }
  if (name == "StepLR") {
    return Json{{"type", "step"}, {"step_size", args.at("step_size")}, {"gamma", args.value("gamma", 0.1)}};
  }
  if (name == "MultiStepLR") {
    if (args.at("milestones").empty()) return Json{{"type", "constant"}};
    return Json{{"type", "multi_step"}, {"milestones", args.at("milestones")}, {"gamma", args.value("gamma", 0.1)}};
  }
  if (name == "ExponentialLR") return Json{{"type", "exponential"}, {"gamma", args.at("gamma")}};
  if (name == "CosineAnnealingWarmRestarts") {
    return Json{{"type", "warm_restarts"},
                {"cycle_steps", args.at("T_0")},
                {"cycle_mult", args.value("T_mult", 1)},
                {"min_lr_ratio", args.value("eta_min", 0.0) / optimizer_lr}};
  }
  // torch leaves the first factor only at step total_iters, which 0 never is again.
  if (name == "LinearLR" && args.value("total_iters", 5) == 0) return held(args.value("start_factor", 1.0 / 3.0));
  if (name == "ConstantLR" && args.value("total_iters", 5) == 0) return held(args.value("factor", 1.0 / 3.0));
  if (name == "LinearLR") {
    return Json{{"type", "ramp"},
                {"total_steps", args.value("total_iters", 5)},
                {"start_factor", args.value("start_factor", 1.0 / 3.0)},
                {"end_factor", args.value("end_factor", 1.0)}};
  }
  if (name == "ConstantLR") {
    return chain({held(args.value("factor", 1.0 / 3.0)), {{"type", "constant"}}}, args.value("total_iters", 5));
  }
  if (name == "SequentialLR") {  // torch's LinearLR up to the milestone, then ExponentialLR
    return chain({{{"type", "ramp"}, {"total_steps", args.at("milestone")}, {"start_factor", args.at("start_factor")}},
                  {{"type", "exponential"}, {"gamma", args.at("gamma")}}},
                 args.at("milestone"));
  }
  if (name == "OneCycleLR") {
    Json block = args;
    if (!block.contains("total_steps"))
      block["total_steps"] = args.value("epochs", 1) * args.value("steps_per_epoch", 1);
    for (const char* key : {"max_lr", "epochs", "steps_per_epoch"}) block.erase(key);
    block["type"] = "one_cycle";
    if (!block.contains("cycle_momentum")) block["cycle_momentum"] = true;
    return block;
  }
  if (name == "CyclicLR" && args.value("mode", "triangular") != "exp_range") return waves(args);
  if (name == "ReduceLROnPlateau") {
    Json block = args;
    block["type"] = "plateau";
    block["monitor"] = "val/loss";
    block["min_lr_ratio"] = args.value("min_lr", 0.0) / optimizer_lr;
    block["eps"] = args.value("eps", 1e-8) / optimizer_lr;
    block.erase("metrics");
    block.erase("min_lr");
    return block;
  }
  return std::nullopt;
}

}  // namespace tests
