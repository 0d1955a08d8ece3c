#include "runner/review/checkpoint/bitwise_compare.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/tensor_compare.h"
#include "runner/core/text/text.h"
#include "runner/review/recorded_curves.h"
#include "runner/store/run_reader.h"

namespace runner::review {
namespace {

std::string exact(double value) { return core::short_number(value, 17); }

/// What was found, with the step that it belongs to.
using Found = std::vector<std::pair<std::int64_t, std::string>>;

std::optional<std::pair<std::int64_t, std::string>> first_difference(const std::string& name,
                                                                     const std::map<std::int64_t, double>& first,
                                                                     const std::map<std::int64_t, double>& again,
                                                                     std::int64_t last_step, std::int64_t& compared) {
  std::set<std::int64_t> steps;
  for (const auto& [step, value] : first) steps.insert(step);
  for (const auto& [step, value] : again) steps.insert(step);
  for (const std::int64_t step : steps) {
    if (step > last_step) break;
    ++compared;
    const auto a = first.find(step), b = again.find(step);
    const std::string where = name + " at step " + std::to_string(step);
    if (a == first.end()) return {{step, where + " is " + exact(b->second) + "; missing in the original"}};
    if (b == again.end()) return {{step, where + " is missing; was " + exact(a->second)}};
    if (!same_bits(a->second, b->second)) {
      return {{step, where + " is " + exact(b->second) + ", and was " + exact(a->second)}};
    }
  }
  return std::nullopt;
}

void compare_curves(const RecordedCurves& first, const RecordedCurves& again, std::int64_t last_step,
                    BitwiseDifference& difference, Found& found) {
  static const std::map<std::int64_t, double> kNothing;
  const auto compare = [&](const std::string& name, const auto& a, const auto& b) {
    if (auto one = first_difference(name, a, b, last_step, difference.points)) found.push_back(std::move(*one));
  };
  for (const auto& [name, points] : first) {
    const auto other = again.find(name);
    compare(name, points, other == again.end() ? kNothing : other->second);
  }
  for (const auto& [name, points] : again) {
    if (!first.contains(name)) compare(name, kNothing, points);
  }
}

/// What was written out for a person: samples of text, and values that were not finite.
core::Result<std::vector<std::pair<std::int64_t, std::string>>> words_of(const std::string& run_dir) {
  const auto events = store::read_events(run_dir);
  if (!events) return events.failure();
  std::vector<std::pair<std::int64_t, std::string>> words;
  for (const store::EventRow& event : events.value()) {
    if (event.kind == "text" || event.kind == "nan") words.emplace_back(event.step, core::to_json(event.data, -1));
  }
  std::stable_sort(words.begin(), words.end());
  return words;
}

void compare_words(const Found& first, const Found& again, std::int64_t last_step, Found& found) {
  for (std::size_t i = 0; i < std::max(first.size(), again.size()); ++i) {
    const bool in_first = i < first.size() && first[i].first <= last_step;
    const bool in_again = i < again.size() && again[i].first <= last_step;
    if (!in_first && !in_again) return;
    if (in_first && in_again && first[i] == again[i]) continue;
    const std::int64_t step = in_first ? first[i].first : again[i].first;
    found.emplace_back(step, "the text at step " + std::to_string(step) + " is " +
                                 (in_again ? again[i].second : "missing") + ", and was " +
                                 (in_first ? first[i].second : "not there"));
    return;
  }
}

std::map<std::int64_t, artifact::CheckpointInfo> checkpoints_of(const std::string& run_dir) {
  std::map<std::int64_t, artifact::CheckpointInfo> by_step;
  for (auto& info : artifact::list_checkpoints(run_dir + "/checkpoints")) by_step.insert_or_assign(info.step, info);
  return by_step;
}

/// The first tensor (parameters before the optimizer before the rest) and the first value that differ.
core::Result<void> compare_checkpoint(std::int64_t step, const std::string& first, const std::string& again,
                                      BitwiseDifference& difference, Found& found) {
  const auto compared = artifact::compare_checkpoints(again, first);
  if (!compared) return compared.failure();
  const artifact::Comparison& all = compared.value();
  difference.tensors = all.tensors_compared;
  const std::string where = " in the checkpoint of step " + std::to_string(step) + " (a: this run, b: the first one)";
  if (!all.tensors.empty()) {
    const std::size_t more = all.tensors.size() - 1;
    found.emplace_back(step, artifact::to_text(all.tensors.front()) + where +
                                 (more > 0 ? "; " + std::to_string(more) + " more of its tensors differ" : ""));
  }
  for (const artifact::ValueDifference& value : all.values) {
    if (value.wall_clock) continue;
    found.emplace_back(step, artifact::to_text(value) + where);
    break;
  }
  return {};
}

std::int64_t last_point(const RecordedCurves& curves) {
  std::int64_t last = 0;
  for (const auto& [name, points] : curves) {
    if (!points.empty()) last = std::max(last, points.rbegin()->first);
  }
  return last;
}

}  // namespace

core::Result<BitwiseDifference> compare_runs(const std::string& first, const std::string& again,
                                             const CompareOptions& options) {
  BitwiseDifference difference;
  Found found;
  const auto left = curves_of(first), right = curves_of(again);
  if (!left) return left.failure();
  if (!right) return right.failure();
  const std::int64_t last_step = options.to_the_end ? INT64_MAX : last_point(left.value());
  compare_curves(left.value(), right.value(), last_step, difference, found);
  const auto said = words_of(first), said_again = words_of(again);
  if (!said) return said.failure();
  if (!said_again) return said_again.failure();
  compare_words(said.value(), said_again.value(), last_step, found);

  const auto saved = checkpoints_of(first), saved_again = checkpoints_of(again);
  for (auto info = saved.rbegin(); info != saved.rend(); ++info) {
    const auto other = saved_again.find(info->first);
    if (other == saved_again.end()) continue;
    difference.checkpoint_step = info->first;
    const auto done = compare_checkpoint(info->first, info->second.path, other->second.path, difference, found);
    if (!done) return done.failure();
    break;
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [step, text] : found) difference.found.push_back(std::move(text));
  return difference;
}

}  // namespace runner::review
