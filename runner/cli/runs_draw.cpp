#include "runner/cli/runs_draw.h"

#include <utility>

#include "runner/cli/runs_chart.h"
#include "runner/cli/runs_plot.h"
#include "runner/core/files.h"
#include "runner/core/utf8.h"

namespace runner::cli {
namespace {

constexpr int kPixelsMin = 240;

std::string title_of(const std::vector<std::string>& metrics) {
  std::string title;
  for (const std::string& metric : metrics) title += (title.empty() ? "" : ", ") + core::escape_for_terminal(metric);
  return title;
}

void write(const std::string& path, const std::string& content, std::string& said, core::Diagnostics& diagnostics) {
  const auto written = core::write_output(path, content);
  if (written) {
    said += "wrote " + path + "\n";
  } else {
    diagnostics.error({}, written.failure().message, written.failure().hint);
  }
}

std::string as_characters(const Curves& all, const RunsPlotRequest& request, const RunsContext& context) {
  PlotOptions options = plot_options(context.terminal);
  options.x_title = all.x_title;
  options.log_x = request.log_x;
  options.log_y = request.log_y;
  if (request.width > 0) options.width = request.width;
  if (request.height > 0) options.height = request.height;
  const std::string title = all.curves.size() == 1 ? all.curves[0].label : title_of(request.curves.metrics);
  return cut_text(title, static_cast<std::size_t>(options.width), context.terminal) + "\n" +
         plot_text(all.curves, options, context.terminal);
}

}  // namespace

std::optional<std::string> runs_plot(const RunsContext& context, const RunsPlotRequest& request,
                                     core::Diagnostics& diagnostics) {
  const bool newest = request.runs.empty() && request.filter.empty();
  const auto runs =
      choose_runs(context, newest ? std::vector<std::string>{"last"} : request.runs, request.filter, diagnostics);
  if (!runs) return std::nullopt;
  const auto all = load_curves(*runs, request.curves, diagnostics);
  if (!all) return std::nullopt;
  if (request.svg.empty() && request.png.empty()) return as_characters(*all, request, context);
  for (const auto& [flag, size] : {std::pair("--width", request.width), std::pair("--height", request.height)}) {
    if (size == 0 || size >= kPixelsMin) continue;
    diagnostics.error({}, std::string(flag) + " is " + std::to_string(size) + " pixels, and a picture needs " +
                              std::to_string(kPixelsMin));
    return std::nullopt;
  }
  ChartOptions options;
  options.title = title_of(request.curves.metrics);
  options.x_title = all->x_title;
  options.log_x = request.log_x;
  options.log_y = request.log_y;
  if (request.width > 0) options.width = request.width;
  if (request.height > 0) options.height = request.height;
  std::string said;
  if (!request.svg.empty()) write(request.svg, chart_svg(all->curves, options), said, diagnostics);
  if (!request.png.empty()) write(request.png, chart_png(all->curves, options), said, diagnostics);
  return said;
}

}  // namespace runner::cli
