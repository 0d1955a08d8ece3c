#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/device_here.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/review/terminal_plot.h"
#include "runner/terminal/text.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr std::int64_t kStepsMin = 10, kStepsMax = 2000;
constexpr double kLrMin = 1e-37, kLrMax = 1e38;  // of float32

struct LrFindFlags {
  RecipeFlags recipe;
  engine::LrRangeRequest sweep;
  std::string sweep_shape = "exponential", format = "text";
};

std::string sweep_json(const engine::LrRangeTest& sweep) {
  Node points = Node::sequence();
  for (const engine::LrPoint& point : sweep.points) {
    Node row = Node::mapping();
    row.set("lr", Node::floating(point.lr));
    row.set("loss", Node::floating(point.loss));
    row.set("smoothed", Node::floating(point.smoothed));
    points.items().push_back(std::move(row));
  }
  Node root = Node::mapping();
  root.set("suggestion", sweep.suggestion ? Node::floating(sweep.suggestion->valley) : Node::null());
  root.set("steepest", sweep.suggestion ? Node::floating(sweep.suggestion->steepest) : Node::null());
  root.set("diverged", Node::boolean(sweep.diverged));
  root.set("points", std::move(points));
  return core::to_json(root) + "\n";
}

/// Up to where the loss exceeds everything before its minimum: a diverging end would flatten the descent.
chart::Curve shown_curve(const engine::LrRangeTest& sweep) {
  chart::Curve curve{"smoothed loss", {}};
  double highest = -std::numeric_limits<double>::infinity(), before_least = highest;
  double least = std::numeric_limits<double>::infinity();
  for (const engine::LrPoint& point : sweep.points) {
    highest = std::max(highest, point.smoothed);
    if (point.smoothed < least) least = point.smoothed, before_least = highest;
  }
  bool is_past_least = false;
  for (const engine::LrPoint& point : sweep.points) {
    is_past_least = is_past_least || point.smoothed == least;
    curve.points.emplace_back(point.lr, std::min(point.smoothed, before_least));
    if (is_past_least && point.smoothed > before_least) break;
  }
  return curve;
}

std::string sweep_text(const LrFindFlags& flags, const engine::LrRangeTest& sweep) {
  const terminal::Terminal terminal = terminal::Terminal::of_stdout(false);
  review::PlotOptions options = review::plot_options(terminal);
  options.x_title = "lr";
  options.log_x = !flags.sweep.linear;
  std::string text =
      flags.recipe.path + "  loss, smoothed\n" + review::plot_text({shown_curve(sweep)}, options, terminal);
  text += "  tried     " + std::to_string(sweep.points.size()) + " of " + std::to_string(flags.sweep.steps) +
          " rates from " + terminal::number_text(flags.sweep.min_lr) + " to " +
          terminal::number_text(flags.sweep.max_lr) + (sweep.diverged ? "; then the loss diverged\n" : "\n");
  const auto& suggestion = sweep.suggestion;
  if (!suggestion) return text + "  no rate to suggest: the loss did not fall\n";
  text += "  lr        " + terminal::number_text(suggestion->valley) + "  middle of the longest descent\n";
  text += "  steepest  " + terminal::number_text(suggestion->steepest) + "\n";
  return text + "  use it    --set optimizer.lr=" + terminal::number_text(suggestion->valley) + "\n";
}

void lr_find(Session& session, LrFindFlags& flags) {
  flags.sweep.linear = flags.sweep_shape == "linear";
  if (!(flags.sweep.min_lr < flags.sweep.max_lr)) {  // NaN, too
    return session.fail("--min-lr " + terminal::number_text(flags.sweep.min_lr) + " is not below --max-lr " +
                            terminal::number_text(flags.sweep.max_lr),
                        "the rates climb from --min-lr to --max-lr");
  }
  if (flags.sweep.min_lr < kLrMin || flags.sweep.max_lr > kLrMax) {
    const bool small = flags.sweep.min_lr < kLrMin;
    return session.fail((small ? "--min-lr is " : "--max-lr is ") +
                            terminal::number_text(small ? flags.sweep.min_lr : flags.sweep.max_lr) + ", which is too " +
                            (small ? "small" : "large") + " for float32 weights",
                        "use rates from " + terminal::number_text(kLrMin) + " to " + terminal::number_text(kLrMax));
  }
  auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  const auto device = device_here(session, *recipe);
  if (!device) return;
  recipe->settle_device(*device);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  core::Diagnostics diagnostics;
  const auto sweep = engine->find_lr(*recipe, flags.sweep, diagnostics);
  session.show(diagnostics);
  if (!sweep) {
    session.exit_code = core::kExitUsage;
    return;
  }
  std::fputs((flags.format == "json" ? sweep_json(*sweep) : sweep_text(flags, *sweep)).c_str(), stdout);
}

}  // namespace

void add_lr_find(CLI::App& app, Session& session) {
  auto flags = std::make_shared<LrFindFlags>();
  CLI::App* command =
      app.add_subcommand("lr-find", "Suggest a learning rate by training with rates that climb at every step");
  add_recipe_flags(*command, flags->recipe);
  command->add_option("--min-lr", flags->sweep.min_lr, "First rate (default 1e-7)")->check(CLI::PositiveNumber);
  command->add_option("--max-lr", flags->sweep.max_lr, "Last rate (default 10)")->check(CLI::PositiveNumber);
  command->add_option("--steps", flags->sweep.steps, "Number of rates to try (default 100)")
      ->check(CLI::Range(kStepsMin, kStepsMax));
  command->add_option("--sweep", flags->sweep_shape, "Spacing of the rates: exponential (default) or linear")
      ->check(CLI::IsMember({"exponential", "linear"}));
  command->add_option("--smoothing", flags->sweep.smoothing, "Smoothing of the losses (default 0.98)")
      ->check(CLI::Range(0.0, 0.999));
  command
      ->add_option("--diverged-at", flags->sweep.diverged_at,
                   "Stop when the loss exceeds this multiple of its minimum (default 4)")
      ->check(CLI::Range(1.01, 1e6));
  add_format(*command, flags->format, {"text", "json"});
  command->footer(
      "\nExamples:\n"
      "  roux lr-find recipes/quickstart.yaml\n"
      "  roux lr-find recipe.yaml --min-lr 1e-5 --max-lr 1 --steps 200 --format json\n\n"
      "Trains from the recipe's initial weights, without a run or any files.");
  command->callback([&session, flags] { session.command = [&session, flags] { lr_find(session, *flags); }; });
}

}  // namespace runner::cli
