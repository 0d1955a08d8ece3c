#include "runner/cli/group/runs.h"
#include "runner/review/plot_file.h"

namespace runner::cli {

void add_runs_plot(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsPlotRequest>();
  Command command = runs.add_subcommand("plot", "Plot metrics of runs, in the terminal or to a file");
  command
      .add_option_function(
          "METRIC",
          [request](const std::string& name) { request->curves.metrics.insert(request->curves.metrics.begin(), name); },
          "Metric to plot; `*` matches any text")
      .required();
  command.add_option("RUN", request->runs, kRunText);
  command.add_option("--filter", request->filter, kFilterText).type_name("EXPR");
  add_curve_flags(command, request->curves);
  command.add_flag("--log-x", request->log_x, "Use a logarithmic x axis");
  command.add_flag("--log-y", request->log_y, "Use a logarithmic y axis");
  add_picture_flags(command, request->picture);
  command.footer(
      "\nExamples:\n"
      "  roux runs plot val/loss\n"
      "  roux runs plot loss tiny-gpt last --smooth 0.9 --log-y\n"
      "  roux runs plot loss --metric val/loss --filter 'tag:keep' --x time --svg loss.svg --png loss.png\n");
  on_runs_call<review::RunsPlotRequest>(command, session, request, review::runs_plot);
}

}  // namespace runner::cli
