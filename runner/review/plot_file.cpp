#include "runner/review/plot_file.h"

#include <algorithm>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/review/terminal_plot.h"

namespace runner::review {
namespace {

constexpr int kPixelsMin = 240;

std::string title_of(const std::vector<std::string>& metrics) {
  return core::joined(metrics, ", ", core::escape_for_terminal);
}

void write(const std::string& path, const std::string& content, std::string& said, core::Diagnostics& diagnostics) {
  const auto written = core::write_output(path, content);
  if (written) {
    said += "wrote " + path + "\n";
  } else {
    diagnostics.error({}, written.failure().message, written.failure().hint);
  }
}

std::string as_characters(const Picture& picture, const PictureRequest& request, const terminal::Terminal& terminal) {
  PlotOptions options = plot_options(terminal);
  if (request.width > 0) options.width = request.width;
  if (request.height > 0) options.height = request.height;
  std::string text;
  for (const chart::Chart& chart : picture.charts) {
    text += (text.empty() ? "" : "\n") +
            terminal::cut_text(chart.options.title, static_cast<std::size_t>(options.width), terminal) + "\n" +
            plot_chart_text(chart, options, terminal);
  }
  return text;
}

/// For `plot RUN METRIC`: the command with its arguments in the right order. "" if they may be right.
std::string swapped_arguments_hint(const RunsContext& context, const RunsPlotRequest& request) {
  if (request.runs.size() != 1 || request.curves.metrics.empty()) return "";
  const std::string &metric = request.curves.metrics.front(), &run = request.runs.front();
  const auto is_run = [&context](const std::string& text) {
    return store::find_run(context.output_dir, text, context.clock).ok();
  };
  if (is_run(run) || !is_run(metric)) return "";
  return "the metric comes first: `roux runs plot " + run + " " + metric + "`";
}

/// Divides the requested size among the charts.
void set_size(Picture& picture, const PictureRequest& request) {
  const int columns = std::min(picture.columns, static_cast<int>(picture.charts.size()));
  const int rows = (static_cast<int>(picture.charts.size()) + columns - 1) / columns;
  for (chart::Chart& chart : picture.charts) {
    if (request.width > 0) chart.options.width = std::max(request.width / columns, kPixelsMin);
    if (request.height > 0) chart.options.height = std::max(request.height / rows, kPixelsMin);
  }
}

}  // namespace

std::optional<std::string> write_picture(Picture picture, const PictureRequest& request,
                                         const terminal::Terminal& terminal, core::Diagnostics& diagnostics) {
  if (request.svg.empty() && request.png.empty()) return as_characters(picture, request, terminal);
  for (const auto& [flag, size] : {std::pair("--width", request.width), std::pair("--height", request.height)}) {
    if (size == 0 || size >= kPixelsMin) continue;
    diagnostics.error({}, std::string(flag) + " is " + std::to_string(size) + " pixels, but must be at least " +
                              std::to_string(kPixelsMin));
    return std::nullopt;
  }
  set_size(picture, request);
  std::string said;
  if (!request.svg.empty()) write(request.svg, chart::charts_svg(picture.charts, picture.columns), said, diagnostics);
  if (!request.png.empty()) write(request.png, chart::charts_png(picture.charts, picture.columns), said, diagnostics);
  return said;
}

std::optional<std::string> runs_plot(const RunsContext& context, const RunsPlotRequest& request,
                                     core::Diagnostics& diagnostics) {
  if (const std::string hint = swapped_arguments_hint(context, request); !hint.empty()) {
    diagnostics.error({}, "\"" + request.runs.front() + "\" is not a run", hint);
    return std::nullopt;
  }
  const bool newest = request.runs.empty() && request.filter.empty();
  const auto runs =
      choose_runs(context, newest ? std::vector<std::string>{"last"} : request.runs, request.filter, diagnostics);
  if (!runs) return std::nullopt;
  auto all = load_curves(*runs, request.curves, diagnostics);
  if (!all) return std::nullopt;
  const bool in_files = !request.picture.svg.empty() || !request.picture.png.empty();
  chart::Chart chart;
  // One curve has no legend on the terminal, so that its name is the title.
  chart.options.title = !in_files && all->curves.size() == 1 ? all->curves[0].label : title_of(request.curves.metrics);
  chart.options.x_title = all->x_title;
  chart.options.log_x = request.log_x;
  chart.options.log_y = request.log_y;
  chart.curves = std::move(all->curves);
  return write_picture({{std::move(chart)}}, request.picture, context.terminal, diagnostics);
}

}  // namespace runner::review
