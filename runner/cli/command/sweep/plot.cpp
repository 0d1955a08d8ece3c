#include <algorithm>
#include <array>
#include <utility>

#include "runner/cli/group/sweep.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/review/sweep/charts.h"

namespace runner::cli {
namespace {

constexpr std::size_t kPairedMax = 4;  // parameters whose pairs are drawn by default: six plots

struct SweepPlotRequest {
  std::string kind = "", sweep = "last";
  std::vector<std::string> parameters = {};  ///< names; empty: those worth drawing
  bool log_y = false;
  review::PictureRequest picture = {};
};

/// A kind of plot: of trials in their order, or of variants over their parameters.
struct Kind {
  const char* name;
  review::Picture (*of_trials)(const review::SweepHistory&);
  review::Picture (*of_parameters)(const review::SweepHistory&, const std::vector<std::size_t>&);
  std::size_t parameters_min = 0, parameters_max = 0;  ///< the latter by default; 0: all
};

constexpr std::array<Kind, 9> kKinds = {{{"history", review::history_picture, nullptr},
                                         {"intermediate", review::intermediate_picture, nullptr},
                                         {"parallel", nullptr, review::parallel_picture, 1},
                                         {"slice", nullptr, review::slice_picture, 1},
                                         {"contour", nullptr, review::contour_picture, 2, kPairedMax},
                                         {"rank", nullptr, review::rank_picture, 2, kPairedMax},
                                         {"edf", review::edf_picture, nullptr},
                                         {"timeline", review::timeline_picture, nullptr},
                                         {"pareto", review::pareto_picture, nullptr}}};

/// Positions of the parameters that are named, by default of those worth drawing.
std::optional<std::vector<std::size_t>> chosen_parameters(const review::SweepHistory& history, const Kind& kind,
                                                          const std::vector<std::string>& names,
                                                          core::Diagnostics& diagnostics) {
  const auto& dimensions = history.sweep.space().dimensions();
  std::vector<std::string> known;
  for (const auto& dimension : dimensions) known.push_back(dimension.name);
  std::vector<std::size_t> chosen;
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at != known.end()) {
      chosen.push_back(static_cast<std::size_t>(at - known.begin()));
      continue;
    }
    const std::string near = core::closest(name, known);
    diagnostics.error({}, "the sweep does not vary \"" + name + "\"",
                      near.empty() ? "" : "did you mean \"" + near + "\"?");
  }
  if (diagnostics.has_errors()) return std::nullopt;
  if (names.empty()) chosen = review::parameters_to_plot(history, kind.parameters_max);
  if (chosen.size() >= kind.parameters_min) return chosen;
  diagnostics.error({}, std::string("a ") + kind.name + " plot needs " +
                            core::counted(static_cast<std::int64_t>(kind.parameters_min), "parameter", "parameters") +
                            " with more than one value");
  return std::nullopt;
}

const Kind* find_kind(const std::string& name) {
  const auto at = std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind.name == name; });
  return at == kKinds.end() ? nullptr : &*at;
}

std::optional<std::string> answer(const sweep::OpenSweep& open, const SweepPlotRequest& request,
                                  const review::RunsContext& context, core::Diagnostics& diagnostics) {
  const Kind& kind = *find_kind(request.kind);
  const review::SweepHistory history = review::read_history(open, context.clock);
  review::Picture picture;
  if (kind.of_parameters != nullptr) {
    const auto parameters = chosen_parameters(history, kind, request.parameters, diagnostics);
    if (!parameters) return std::nullopt;
    picture = kind.of_parameters(history, *parameters);
  } else {
    picture = kind.of_trials(history);
  }
  if (picture.charts.empty()) {  // of a pareto front
    diagnostics.error({}, "a Pareto front needs several objectives, but the sweep has one",
                      "list them in `sweep.objectives`");
    return std::nullopt;
  }
  // Elsewhere y is a share or a number of trials.
  const bool of_metric = request.kind == "history" || request.kind == "intermediate" || request.kind == "slice";
  if (request.log_y && !of_metric) {
    diagnostics.error({}, "--log-y applies only to history, intermediate and slice, whose y axis is the metric");
    return std::nullopt;
  }
  for (chart::Chart& chart : picture.charts) chart.options.log_y = chart.options.log_y || request.log_y;
  return review::write_picture(std::move(picture), request.picture, context.terminal, diagnostics);
}

}  // namespace

void add_sweep_plot(Command sweep, Session& session) {
  const auto request = std::make_shared<SweepPlotRequest>();
  Command command = sweep.add_subcommand("plot", "Plot a sweep, in the terminal or to a file");
  std::vector<std::string> kinds;
  for (const Kind& kind : kKinds) kinds.emplace_back(kind.name);
  accept_only(command.add_option("KIND", request->kind, "Kind of plot: " + core::joined(kinds)).required(), kinds);
  add_sweep_name(command, request->sweep);
  command.add_option("--parameters", request->parameters, "Parameters that parallel, slice, contour and rank show")
      .type_name("PATH")
      .delimiter(',')
      .allow_extra_args(false);
  command.add_flag("--log-y", request->log_y, "Use a logarithmic axis for the metric");
  add_picture_flags(command, request->picture);
  command.footer(
      "\nExamples:\n"
      "  roux sweep plot history\n"
      "  roux sweep plot contour tiny-gpt --parameters optimizer.lr,model.n_layer\n"
      "  roux sweep plot intermediate --log-y --svg curves.svg --png curves.png\n");
  on_sweep_call<SweepPlotRequest>(command, session, request, answer);
}

}  // namespace runner::cli
