#include "runner/sweep/study/outcome.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/launch/exit_message.h"
#include "runner/store/database/text.h"

namespace runner::sweep {
namespace {

using store::RunStatus;
using store::SeriesPoint;

/// Of a model that cannot be built, of a step or an evaluation with its micro-batches, and of all that is left.
bool speaks_of_memory(const std::string& text) {
  return text.starts_with("out of memory: ") || text.starts_with("memory is exhausted") ||
         text.starts_with("the model and the data do not fit into memory") ||
         text.find("the model's weights and their gradients alone take ") != std::string::npos ||
         text.find(" does not fit into memory with micro-batches of ") != std::string::npos;
}

/// A disk that is full from the start. If it fills later, the training ends as resumable.
bool speaks_of_full_disk(const std::string& text) {
  constexpr const char* kWords[] = {" are free", "space left on device", "disk is full", "quota exceeded"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&text](const char* words) { return text.find(words) != std::string::npos; });
}

/// Of one of several processes: reported by the supervisor, which exits with 1.
bool speaks_of_signal(const std::string& text) { return text.find(" was killed by SIG") != std::string::npos; }

bool met_nan(const std::string& run_dir) {
  const auto events = store::read_events(run_dir);
  return events && std::any_of(events.value().begin(), events.value().end(),
                               [](const store::EventRow& event) { return event.kind == "nan"; });
}

std::vector<SeriesPoint> curve_of(const store::RunRecord& run, const Metric& metric) {
  const auto found = run.curves.find(metric.name);
  return found == run.curves.end() ? std::vector<SeriesPoint>() : found->second;
}

/// The result of a trial that trained to its end.
void take_values(Outcome& outcome, const store::RunRecord& run, const std::vector<Metric>& objectives) {
  const auto is_nothing = [&outcome](Outcome::Kind kind, std::string reason) {
    outcome.kind = kind;
    outcome.reason = std::move(reason);
    outcome.value.reset();
    outcome.others.clear();
  };
  for (const Metric& metric : objectives) {
    const bool first = &metric == &objectives.front();
    const auto point = point_that_counts(curve_of(run, metric), metric);
    if (!point) return is_nothing(Outcome::Kind::kOther, metric.name + " was never measured");
    if (first) outcome.step = point->step;
    if (!std::isfinite(point->value)) {
      return is_nothing(Outcome::Kind::kNan, metric.name + (std::isnan(point->value) ? " is nan" : " is infinite"));
    }
    first ? void(outcome.value = point->value) : outcome.others.push_back(point->value);
  }
}

}  // namespace

std::optional<store::RunSummary> read_trial_run(const std::string& run_dir, const core::Clock& clock) {
  if (!store::is_run_folder(run_dir)) return std::nullopt;
  store::RunSummary run = store::read_record(run_dir);
  store::settle_status(run, clock);
  return run;
}

std::optional<store::RunRecord> read_trial_record(const std::string& run_dir, const std::vector<Metric>& objectives,
                                                  const core::Clock& clock, store::InMemoryRun* light) {
  std::vector<std::string> names;
  for (const Metric& metric : objectives) names.push_back(metric.name);
  if (light != nullptr) {
    if (auto record = light->record_of(run_dir, names)) return record;
  }
  if (!store::is_run_folder(run_dir)) return std::nullopt;
  store::RunRecord record = store::read_record(run_dir, names);
  store::settle_status(record.run, clock);
  return record;
}

std::optional<store::RunSummary> find_trial_run(const std::string& output_dir, const std::string& run_name,
                                                const core::Clock& clock) {
  std::string newest;
  const std::vector<std::string> folders = core::list_folder(output_dir).value();
  for (const std::string& folder : folders) {
    const auto name = store::parse_folder_name(folder);
    if (name && name->run_name == run_name && folder > newest) newest = folder;
  }
  if (newest.empty()) return std::nullopt;
  return read_trial_run(output_dir + "/" + newest, clock);
}

std::vector<SeriesPoint> read_curve(const std::string& run_dir, const std::string& metric) {
  return store::read_series(run_dir, metric).value_or({});
}

std::optional<SeriesPoint> point_that_counts(const std::vector<SeriesPoint>& curve, const Metric& metric) {
  if (curve.empty()) return std::nullopt;
  if (!metric.best) return curve.back();
  std::optional<SeriesPoint> best;
  for (const SeriesPoint& point : curve) {
    if (!std::isfinite(point.value)) continue;
    if (!best || (metric.maximize ? point.value > best->value : point.value < best->value)) best = point;
  }
  return best ? best : curve.back();
}

std::optional<double> value_of_pruned(const std::vector<SeriesPoint>& curve, const Metric& metric) {
  if (curve.empty()) return std::nullopt;
  if (!std::isfinite(curve.back().value)) return curve.back().value;
  return point_that_counts(curve, metric)->value;
}

Outcome classify(const std::optional<store::RunRecord>& run, int status, const std::string& words,
                 const std::vector<Metric>& objectives) {
  Outcome outcome;
  if (run) outcome.curve = curve_of(*run, objectives.front());
  outcome.reason = launch::in_one_line(!words.empty() ? words : run ? run->run.reason : "");
  // No recorded end: something else ended the process, such as a library that calls exit().
  const bool has_left = status == core::kExitDone
                            ? !run || run->run.status != RunStatus::kFinished
                            : status < 128 && words.empty() && run && run->run.status == RunStatus::kCrashed;
  if (has_left) {
    outcome.kind = Outcome::Kind::kCrash;
    outcome.reason = "it exited before its end, with status " + std::to_string(status);
  } else if (status == core::kExitDone) {
    outcome.kind = Outcome::Kind::kComplete;
    outcome.reason.clear();
    take_values(outcome, *run, objectives);
  } else if (status == core::kExitResumable || speaks_of_full_disk(outcome.reason)) {
    outcome.kind = Outcome::Kind::kInterrupted;
  } else if (status >= 128) {
    outcome.kind = Outcome::Kind::kCrash;
    outcome.reason = "ended by signal " + std::to_string(status - 128);
  } else if (speaks_of_signal(outcome.reason)) {
    outcome.kind = Outcome::Kind::kCrash;
  } else if (speaks_of_memory(outcome.reason)) {
    outcome.kind = Outcome::Kind::kMemory;  // a trial that cannot start for lack of memory has no wrong recipe
  } else if (status == core::kExitUsage) {
    outcome.kind = Outcome::Kind::kRecipe;
  } else if (run && met_nan(run->run.run_dir)) {
    outcome.kind = Outcome::Kind::kNan;
  } else if (outcome.reason.empty()) {
    outcome.reason = "exit status " + std::to_string(status);
  }
  return outcome;
}

std::optional<int> status_of(const store::RunSummary& run) {
  if (run.status == RunStatus::kFinished) return core::kExitDone;
  if (run.status == RunStatus::kFailed) return core::kExitFailed;
  return std::nullopt;
}

}  // namespace runner::sweep
