#include "runner/review/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "runner/core/language/name_map.h"
#include "runner/core/text/utf8.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;

struct TimeUnit {
  const char* name;
  double seconds;
};
constexpr std::array<TimeUnit, 3> kTimeUnits = {{{"s", 1}, {"min", 60}, {"h", 3600}}};
constexpr double kUnitsMin = 3;  // 150 s are not 2.5 min yet

/// The names of the runs' metrics that are meant; what has no `*` is meant by itself.
std::vector<std::string> chosen_names(const std::vector<RunSummary>& runs, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  std::set<std::string> there;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.metrics) there.insert(name);
  }
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (const std::string& name : there) {
      if (!core::matches_wildcard(pattern, name)) continue;
      add(name);
      any = true;
    }
    if (!any) add(pattern);  // what reads the series says that there is none, and which there are
  }
  return names;
}

const char* summary_key(XAxis x) {
  switch (x) {
    case XAxis::kEpoch: return "epoch";
    case XAxis::kTokens: return "tokens";
    case XAxis::kSamples: return "samples";
    default: return "";
  }
}

std::string unit_of(XAxis x) { return x == XAxis::kEpoch ? "epochs" : summary_key(x); }

/// What one step counts on this axis; nothing where the run does not say.
std::optional<double> per_step(const RunSummary& run, XAxis x) {
  if (x == XAxis::kStep || x == XAxis::kTime) return 1;
  const Node* amount = run.summary.find(summary_key(x));
  const Node* steps = run.summary.find("step");
  if (amount == nullptr || steps == nullptr || !amount->is_number() || !steps->is_number()) return std::nullopt;
  if (!(amount->as_double() > 0) || !(steps->as_double() > 0)) return std::nullopt;
  return amount->as_double() / steps->as_double();
}

std::string label_of(const RunSummary& run, const std::string& metric, bool several_metrics, bool several_runs) {
  if (!several_runs) return metric;
  return name_of(run) + " " + run.id + (several_metrics ? ", " + metric : "");
}

/// Seconds become minutes or hours where they are many.
void choose_time_unit(Curves& all) {
  double last = 0;
  for (const chart::Curve& curve : all.curves) {
    if (!curve.points.empty()) last = std::max(last, curve.points.back().first);
  }
  const TimeUnit* unit = &kTimeUnits[0];
  for (const TimeUnit& one : kTimeUnits) {
    if (last >= kUnitsMin * one.seconds) unit = &one;
  }
  for (chart::Curve& curve : all.curves) {
    for (auto& [x, y] : curve.points) x /= unit->seconds;
  }
  all.x_title = std::string("time in ") + unit->name;
}

}  // namespace

void smooth(std::vector<std::pair<double, double>>& points, double weight) {
  if (weight <= 0) return;
  double sum = 0, share = 1;
  for (auto& [x, y] : points) {
    if (!std::isfinite(y)) continue;
    sum = sum * weight + (1 - weight) * y;
    share *= weight;
    y = sum / (1 - share);
  }
}

std::optional<Curves> load_curves(const std::vector<RunSummary>& runs, const CurvesRequest& request,
                                  core::Diagnostics& diagnostics) {
  Curves all;
  const std::vector<std::string> names = chosen_names(runs, request.metrics);
  for (const std::string& name : names) {
    std::vector<core::Diagnostic> missing;
    bool any = false;
    for (const RunSummary& run : runs) {
      const auto leave_out = [&](const std::string& message, const std::string& hint) {
        missing.push_back({core::Severity::kNotice, {}, message, hint});
      };
      const auto scale = per_step(run, request.x);
      if (!scale) {
        leave_out(run.id + " has no record of the " + unit_of(request.x) + " per step",
                  "--x step and --x time work for every run");
        continue;
      }
      const auto series = store::read_series(run.run_dir, name);
      if (!series) {
        leave_out(series.failure().message, series.failure().hint);
        continue;
      }
      any = true;
      chart::Curve curve{label_of(run, name, names.size() > 1, runs.size() > 1), {}};
      for (const store::SeriesPoint& point : series.value()) {
        const double x = request.x == XAxis::kTime ? static_cast<double>(point.time_ms - run.created_ms) / 1000.0
                                                   : static_cast<double>(point.step) * *scale;
        curve.points.emplace_back(x, point.value);
      }
      smooth(curve.points, request.smoothing);
      all.curves.push_back(std::move(curve));
    }
    for (core::Diagnostic& diagnostic : missing) {
      if (!any) diagnostic.severity = core::Severity::kError;
      diagnostics.add(std::move(diagnostic));
    }
  }
  if (diagnostics.has_errors()) return std::nullopt;
  static constexpr std::array<const char*, 5> kTitles = {"step", "", "epoch", "tokens", "samples"};
  all.x_title = kTitles[static_cast<std::size_t>(request.x)];
  if (request.x == XAxis::kTime) choose_time_unit(all);
  return all;
}

}  // namespace runner::review
