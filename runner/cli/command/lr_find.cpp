#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include "runner/cli/commands.h"
#include "runner/cli/engine_or_fail.h"
#include "runner/cli/flags.h"
#include "runner/cli/local_device.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/text/utf8.h"
#include "runner/resolve/recipe.h"
#include "runner/review/terminal_plot.h"
#include "runner/terminal/text.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr std::int64_t kStepsMin = 10, kStepsMax = 2000;
constexpr double kLrMin = 1e-37, kLrMax = 1e38;  // of float32

struct LrFindFlags {
  RecipeFlags recipe;
  engine::LrRangeRequest request;
  std::string format = "text";
};

std::string result_json(const engine::LrRangeTest& result) {
  Node points = Node::sequence();
  for (const engine::LrPoint& point : result.points) {
    Node row = Node::mapping();
    row.set("lr", Node::floating(point.lr));
    row.set("loss", Node::floating(point.loss));
    row.set("smoothed", Node::floating(point.smoothed));
    points.items().push_back(std::move(row));
  }
  Node root = Node::mapping();
  root.set("suggestion", result.suggestion ? Node::floating(result.suggestion->valley) : Node::null());
  root.set("steepest", result.suggestion ? Node::floating(result.suggestion->steepest) : Node::null());
  root.set("diverged", Node::boolean(result.diverged));
  root.set("points", std::move(points));
  return core::to_json(root) + "\n";
}

/// Up to where the loss exceeds everything before its minimum: a diverging end would flatten the descent.
chart::Curve shown_curve(const engine::LrRangeTest& result) {
  chart::Curve curve{"smoothed loss", {}};
  double highest = -std::numeric_limits<double>::infinity(), before_least = highest;
  double least = std::numeric_limits<double>::infinity();
  for (const engine::LrPoint& point : result.points) {
    highest = std::max(highest, point.smoothed);
    if (point.smoothed < least) least = point.smoothed, before_least = highest;
  }
  bool is_past_least = false;
  for (const engine::LrPoint& point : result.points) {
    is_past_least = is_past_least || point.smoothed == least;
    curve.points.emplace_back(point.lr, std::min(point.smoothed, before_least));
    if (is_past_least && point.smoothed > before_least) break;
  }
  return curve;
}

std::string result_text(const LrFindFlags& flags, const engine::LrRangeTest& result) {
  const terminal::Terminal terminal = terminal::Terminal::of_stdout(false);
  review::PlotOptions options = review::plot_options(terminal);
  options.x_title = "lr";
  options.log_x = !flags.request.linear;
  std::string text = core::escape_for_terminal(flags.recipe.path) + "  loss, smoothed\n" +
                     review::plot_text({shown_curve(result)}, options, terminal);
  text += "  tried     " + std::to_string(result.points.size()) + " of " + std::to_string(flags.request.steps) +
          " rates from " + terminal::number_text(flags.request.min_lr) + " to " +
          terminal::number_text(flags.request.max_lr) + (result.diverged ? "; then the loss diverged\n" : "\n");
  const auto& suggestion = result.suggestion;
  if (!suggestion) return text + "  no rate to suggest: the loss did not fall\n";
  text += "  lr        " + terminal::number_text(suggestion->valley) + "  middle of the longest descent\n";
  text += "  steepest  " + terminal::number_text(suggestion->steepest) + "\n";
  return text + "  use it    --set optimizer.lr=" + terminal::number_text(suggestion->valley) + "\n";
}

void lr_find(Session& session, LrFindFlags& flags) {
  if (!(flags.request.min_lr < flags.request.max_lr)) {  // NaN, too
    return session.fail("--min-lr " + terminal::number_text(flags.request.min_lr) + " is not below --max-lr " +
                            terminal::number_text(flags.request.max_lr),
                        "the rates climb from --min-lr to --max-lr");
  }
  if (flags.request.min_lr < kLrMin || flags.request.max_lr > kLrMax) {
    const bool small = flags.request.min_lr < kLrMin;
    return session.fail((small ? "--min-lr is " : "--max-lr is ") +
                            terminal::number_text(small ? flags.request.min_lr : flags.request.max_lr) +
                            ", which is too " + (small ? "small" : "large") + " for float32 weights",
                        "use rates from " + terminal::number_text(kLrMin) + " to " + terminal::number_text(kLrMax));
  }
  session.hub = HubUse::kAll;
  auto recipe = session.load(flags.recipe);
  if (!recipe) return;
  const auto device = local_device(session, *recipe);
  if (!device) return;
  recipe->settle_device(device->name);
  engine::Engine* engine = engine_or_fail(session);
  if (engine == nullptr) return;
  core::Diagnostics diagnostics;
  const auto result = engine->find_lr(*recipe, flags.request, diagnostics);
  session.show(diagnostics);
  if (!result) {
    session.exit_code = core::kExitUsage;
    return;
  }
  std::fputs((flags.format == "json" ? result_json(*result) : result_text(flags, *result)).c_str(), stdout);
}

}  // namespace

void add_lr_find(Command app, Session& session) {
  auto flags = std::make_shared<LrFindFlags>();
  Command command =
      app.add_subcommand("lr-find", "Suggest a learning rate by training with rates that climb at every step");
  add_recipe_flags(command, flags->recipe);
  command.add_option("--min-lr", flags->request.min_lr, "First rate (default 1e-7)").type_name("LR").positive();
  command.add_option("--max-lr", flags->request.max_lr, "Last rate (default 10)").type_name("LR").positive();
  command.add_option("--steps", flags->request.steps, "Number of rates to try (default 100)")
      .type_name("N")
      .in_range(kStepsMin, kStepsMax);
  const std::vector<std::pair<std::string, bool>> spacings = {{"exponential", false}, {"linear", true}};
  add_choice(command, "--spacing", "Spacing of the rates", flags->request.linear, spacings);
  const Option old_spacing =
      add_choice(command, "--sweep", "Old name of --spacing", flags->request.linear, spacings).group("");
  command.add_option("--smoothing", flags->request.smoothing, "Smoothing of the losses (default 0.98)")
      .type_name("WEIGHT")
      .in_range(0.0, 0.999);
  command
      .add_option("--diverged-at", flags->request.diverged_at,
                  "Stop when the loss exceeds this multiple of its minimum (default 4)")
      .type_name("FACTOR")
      .in_range(1.01, 1e6);
  add_format(command, flags->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux lr-find recipes/quickstart.yaml\n"
      "  roux lr-find recipe.yaml --min-lr 1e-5 --max-lr 1 --steps 200 --format json\n\n"
      "Trains from the recipe's initial weights, without a run or any files.");
  command.callback([&session, flags, old_spacing] {
    if (old_spacing.count() > 0) notice_old_flag(session, "--sweep", "--spacing");
    session.command = [&session, flags] { lr_find(session, *flags); };
  });
}

}  // namespace runner::cli
