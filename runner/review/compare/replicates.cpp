#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "runner/core/text/text.h"
#include "runner/review/compare/groups.h"
#include "runner/review/recorded_curves.h"

namespace runner::review {
namespace {

using store::RunSummary;

constexpr double kLevel = 1 - kConfidence;

std::string letters(std::size_t place) {
  std::string name;
  for (std::size_t rest = place + 1; rest > 0; rest = (rest - 1) / 26) {
    name.insert(name.begin(), static_cast<char>('A' + (rest - 1) % 26));
  }
  return name;
}

/// The recipe as text, without what replicates may differ in.
std::string likeness(const RunSummary& run) {
  std::string text;
  for (const auto& [key, value] : flat_params(run.resolved)) {
    if (!is_replicate_key(key)) text += key + "=" + value + "\n";
  }
  return text;
}

/// The last or the best value, with its step.
std::optional<store::SeriesPoint> value_of(const RunSummary& run, const std::string& metric, GroupValue value) {
  const auto points = store::read_series(run.run_dir, metric);
  if (!points) return std::nullopt;
  if (points.value().empty()) return std::nullopt;
  if (value == GroupValue::kLast) return points.value().back();
  const bool highest = direction_of(metric, run.resolved) == MetricDirection::kHigher;
  std::optional<store::SeriesPoint> best;
  for (const store::SeriesPoint& point : points.value()) {
    if (!std::isfinite(point.value)) continue;
    if (!best || (highest ? point.value > best->value : point.value < best->value)) best = point;
  }
  return best;
}

/// The first of the group's runs that computed the same bits.
const RunSummary* original_of(const RunSummary& run, const store::SeriesPoint& point, const ReplicateGroup& group,
                              const std::vector<const RunSummary*>& measured) {
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const bool near = group.values[i] == point.value && group.steps[i] == point.step;  // spares reading all curves
    if (near && same_curves(measured[i]->run_dir, run.run_dir)) return measured[i];
  }
  return nullptr;
}

/// Values without any spread leave nothing to Welch's test.
bool goes_by_ranks(const WelchTest& welch, GroupTest test) {
  return test == GroupTest::kMannWhitney || std::isnan(welch.p);
}

/// Each other group against the first one; only groups that have a spread can be compared.
std::vector<GroupVerdict> compare(const std::vector<ReplicateGroup>& groups, GroupTest test) {
  std::vector<GroupVerdict> verdicts;
  std::size_t first = 0;
  while (first < groups.size() && groups[first].values.size() < 2) ++first;
  for (std::size_t other = first + 1; other < groups.size(); ++other) {
    if (groups[other].values.size() < 2) continue;
    GroupVerdict verdict;
    verdict.a = first;
    verdict.b = other;
    verdict.welch = welch_test(groups[first].values, groups[other].values);
    verdict.ranks = mann_whitney_test(groups[first].values, groups[other].values);
    verdicts.push_back(verdict);
  }
  std::vector<double> p;
  for (const GroupVerdict& verdict : verdicts) {
    p.push_back(goes_by_ranks(verdict.welch, test) ? verdict.ranks.p : verdict.welch.p);
  }
  const std::vector<double> corrected = holm(p);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    verdicts[i].p = corrected[i];
    verdicts[i].differ = corrected[i] < kLevel;
  }
  return verdicts;
}

/// Whoever leaves out the runs that diverged sees the others only: that has to be said with the verdict.
std::string left_out_text(const ReplicateGroup& group) {
  const std::size_t open = group.unfinished.size(), copies = group.copies.size(), without = group.without_value();
  std::vector<std::string> parts;
  if (without > 0) parts.push_back(std::to_string(without) + " that " + (without == 1 ? "has" : "have") + " no value");
  if (open > 0) parts.push_back(std::to_string(open) + " not finished");
  if (copies > 0) parts.push_back(core::counted(static_cast<std::int64_t>(copies), "copy", "copies") + " of others");
  if (parts.empty()) return "";
  return "; " + std::to_string(group.runs.size()) + " runs of " + group.name + ", without " +
         core::joined(parts, " and ");
}

/// `p = 0.0082`, `p < 0.0001`.
std::string p_text(double p) {
  if (std::isnan(p)) return "has no spread to go by";
  return p < 1e-4 ? "p < 0.0001" : "p = " + terminal::number_text(std::round(p * 1e4) / 1e4);
}

std::string interval_text(double low, double high) {
  if (std::isnan(low)) return "";
  return " (95 % interval " + terminal::number_text(low) + " to " + terminal::number_text(high) + ")";
}

}  // namespace

bool is_replicate_key(const std::string& key) {
  const std::string last = key.substr(key.rfind('.') + 1);
  if (last == "seed" || last.ends_with("_seed")) return true;
  for (const char* section :
       {"description", "launch", "logging_steps", "trackers", "capture", "system_metrics", "profiler", "sweep"}) {
    const std::string name = section;
    if (key == name || key.starts_with(name + ".") || key.starts_with(name + "[")) return true;
  }
  return false;
}

Replicates replicates_of(const std::vector<RunSummary>& runs, const RunsGroupsRequest& request) {
  Replicates all;
  all.metric = request.metric;
  std::map<std::string, std::size_t> at;
  std::vector<std::vector<const RunSummary*>> measured;  // by group: of the values
  std::set<std::string> copies;
  for (const RunSummary& run : runs) {
    const auto [place, is_new] = at.try_emplace(likeness(run), all.groups.size());
    if (is_new) {
      std::string name = letters(all.groups.size());
      all.groups.emplace_back().name = std::move(name);
      measured.emplace_back();
    }
    ReplicateGroup& group = all.groups[place->second];
    group.runs.push_back(run);
    if (run.status != store::RunStatus::kFinished) continue;
    const auto point = value_of(run, request.metric, request.value);
    if (!point || !std::isfinite(point->value)) continue;
    if (original_of(run, *point, group, measured[place->second]) != nullptr) {
      copies.insert(run.run_dir);
      continue;
    }
    measured[place->second].push_back(&run);
    group.values.push_back(point->value);
    group.steps.push_back(point->step);
  }
  std::vector<RunSummary> first;
  for (ReplicateGroup& group : all.groups) {
    for (const RunSummary& run : group.runs) {
      if (run.status != store::RunStatus::kFinished) group.unfinished.push_back(&run);
      if (copies.contains(run.run_dir)) group.copies.push_back(&run);
    }
    group.spread = spread_of(group.values);
    first.push_back(group.runs.front());
  }
  all.differing = differing_keys(first);
  std::erase_if(all.differing, [](const DifferingRow& row) { return is_replicate_key(row.key); });
  all.verdicts = compare(all.groups, request.test);
  return all;
}

std::string verdict_text(const Replicates& replicates, const GroupVerdict& verdict, GroupTest test) {
  const WelchTest& welch = verdict.welch;
  const std::string a = replicates.groups[verdict.a].name, b = replicates.groups[verdict.b].name;
  const bool lower = welch.difference < 0;
  std::string text;
  if (verdict.differ) {
    const double low = lower ? -welch.high : welch.low, high = lower ? -welch.low : welch.high;
    text = b + " is " + (lower ? "lower" : "higher") + " than " + a + " by " +
           terminal::number_text(std::fabs(welch.difference)) + interval_text(low, high);
  } else {
    text = "no difference shown between " + a + " and " + b + ": " + b + " minus " + a + " is " +
           terminal::number_text(welch.difference) + interval_text(welch.low, welch.high);
  }
  text += "; Welch's t-test " + p_text(welch.p) + ", Mann-Whitney U test " + p_text(verdict.ranks.p) +
          (verdict.ranks.exact ? " (exact)" : "");
  if (replicates.verdicts.size() > 1) {
    text += "; with Holm's correction for " + std::to_string(replicates.verdicts.size()) + " comparisons " +
            (goes_by_ranks(welch, test) ? "Mann-Whitney's" : "Welch's") + " " + p_text(verdict.p);
  }
  for (const std::size_t index : {verdict.a, verdict.b}) text += left_out_text(replicates.groups[index]);
  return text;
}

}  // namespace runner::review
