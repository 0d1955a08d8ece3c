#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runner/cli/group/sweep.h"
#include "runner/core/text/text.h"
#include "runner/review/sweep/charts.h"
#include "runner/sweep/analysis/importance.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr std::size_t kBarColumns = 30;
constexpr std::size_t kVariantsMin = 2;

struct SweepImportanceRequest {
  std::string sweep = "last", format = "text";
  std::uint64_t seed = 0;
  review::PictureRequest picture = {};
};

std::string bar(double share, const terminal::Terminal& terminal) {
  const auto full = static_cast<std::size_t>(std::lround(share * kBarColumns));
  std::string text;
  for (std::size_t i = 0; i < full; ++i) text += terminal.unicode ? "\u2588" : "#";
  return text;
}

std::string as_text(const std::vector<review::Importance>& list, std::size_t variants,
                    const terminal::Terminal& terminal) {
  std::vector<std::vector<terminal::Cell>> rows;
  for (const review::Importance& one : list) {
    char share[16];
    std::snprintf(share, sizeof share, "%.3f", one.share);
    rows.push_back({{one.name}, {share}, {bar(one.share, terminal), terminal::Paint::kCyan}});
  }
  return terminal::table_text({{"parameter", false, true}, {"importance", true}, {""}}, rows, terminal) + "of " +
         core::counted(static_cast<std::int64_t>(variants), "variant", "variants") + ", by fANOVA\n";
}

std::string as_json(const std::vector<review::Importance>& list) {
  Node root = Node::mapping();
  for (const review::Importance& one : list) root.set(one.name, Node::floating(one.share));
  return core::to_json(root) + "\n";
}

std::optional<std::string> answer(const sweep::OpenSweep& open, const SweepImportanceRequest& request,
                                  const review::RunsContext& context, core::Diagnostics& diagnostics) {
  const review::SweepHistory history = review::read_history(open, context.clock);
  const std::size_t variants = review::measured(history).size();
  if (variants < kVariantsMin) {
    diagnostics.error(
        {}, "importance needs two completed variants, but " + history.name + " has " + std::to_string(variants),
        "pruned ones are not compared: train more, with a larger n_trials and `roux sweep run RECIPE`, or without a "
        "pruner");
    return std::nullopt;
  }
  const std::vector<review::Importance> list = review::importance_of(history, request.seed);
  std::string sometimes;
  for (const auto& dimension : open.sweep.space().dimensions()) {
    const bool there =
        std::any_of(list.begin(), list.end(), [&](const auto& one) { return one.name == dimension.name; });
    if (!there) sometimes += (sometimes.empty() ? "" : ", ") + dimension.name;
  }
  if (!sometimes.empty()) diagnostics.notice({}, "omitted because not every variant has it: " + sometimes);
  if (std::all_of(list.begin(), list.end(), [](const review::Importance& one) { return one.share == 0; }))
    diagnostics.notice({}, "all variants have the same value, or no remaining parameter varies");
  if (!request.picture.svg.empty() || !request.picture.png.empty())
    return review::write_picture(review::importance_picture(history, list), request.picture, context.terminal,
                                 diagnostics);
  return request.format == "json" ? as_json(list) : as_text(list, variants, context.terminal);
}

}  // namespace

void add_sweep_importance(Command sweep, Session& session) {
  const auto request = std::make_shared<SweepImportanceRequest>();
  Command command = sweep.add_subcommand("importance", "Show how much of the metric each parameter explains by itself");
  add_sweep_name(command, request->sweep);
  command.add_option("--seed", request->seed, "Seed of the random forest").type_name("N");
  add_format(command, request->format, {"text", "json"});
  add_picture_flags(command, request->picture);
  command.footer(
      "\nExamples:\n"
      "  roux sweep importance\n"
      "  roux sweep importance tiny-gpt --format json\n"
      "  roux sweep importance --svg importance.svg\n\n"
      "Uses fANOVA, like Optuna: random forests learn the metric and are averaged over all parameters but one.\n"
      "A parameter that matters only together with another has a small importance.\n");
  on_sweep_call<SweepImportanceRequest>(command, session, request, answer);
}

}  // namespace runner::cli
