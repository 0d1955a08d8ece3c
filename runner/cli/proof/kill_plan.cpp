#include "runner/cli/proof/kill_plan.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

namespace runner::cli {
namespace {

constexpr std::string_view kTrained = "trained step ";
constexpr std::string_view kSaving = "saving step ";
constexpr std::string_view kEvaluating = "evaluating ";
constexpr std::string_view kAtStep = " at step ";
constexpr std::string_view kCommitted = "committed step ";
constexpr std::int64_t kStartMax_us = 400'000;  ///< a start takes at least this long, to load LibTorch

std::optional<std::int64_t> number_after(std::string_view line, std::string_view lead) {
  const std::size_t at = line.rfind(lead);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(at + lead.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

class Planner {
 public:
  Planner(const Trace& trace, std::mt19937_64& random) : trace_(trace), random_(random) {}

  KillPoint at_step(std::int64_t step) { return {trained_line(step), upto(gap_after(step))}; }

  /// One moment in each of `count` equal parts of the run.
  std::vector<KillPoint> spread(std::int64_t count) {
    std::vector<KillPoint> points;
    const auto steps = static_cast<std::int64_t>(trace_.trained.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t low = i * steps / count;
      const std::int64_t high = std::max(low, (i + 1) * steps / count - 1);
      const std::int64_t which = std::uniform_int_distribution<std::int64_t>(low, high)(random_);
      // Before the last step: the last save has its own cases.
      points.push_back(at_step(trace_.trained[static_cast<std::size_t>(std::min(which, steps - 2))].step));
    }
    return points;
  }

  std::int64_t upto(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, std::max<std::int64_t>(most, 0))(random_);
  }

  /// Duration of a save in the straight run.
  std::int64_t save_us(std::size_t which) const {
    const Trace::Mark& begin = trace_.saving[which];
    for (const Trace::Mark& end : trace_.saved) {
      if (end.step == begin.step && end.at_us >= begin.at_us) return end.at_us - begin.at_us;
    }
    return 0;
  }

  std::int64_t gap_after(std::int64_t step) const {
    for (std::size_t i = 0; i + 1 < trace_.trained.size(); ++i) {
      if (trace_.trained[i].step == step) return trace_.trained[i + 1].at_us - trace_.trained[i].at_us;
    }
    return 0;
  }

 private:
  const Trace& trace_;
  std::mt19937_64& random_;
};

void add_adversarial(const Trace& trace, Planner& planner, std::vector<KillCase>& cases) {
  const std::int64_t last = trace.trained.back().step;
  const std::int64_t middle = trace.trained[trace.trained.size() / 2].step;
  cases.push_back({"while starting", {{"", planner.upto(std::min(kStartMax_us, trace.started_us))}}});
  cases.push_back({"before the first checkpoint", {{trained_line(trace.trained.front().step), 0}}});
  if (trace.trained.size() > 2) {
    cases.push_back({"in the first step after a resume", {planner.at_step(middle), {"*", 0}}});
    cases.push_back({"while starting again", {planner.at_step(middle), {"", planner.upto(kStartMax_us)}}});
  }
  if (!trace.evaluating.empty()) {
    const Trace::Mark& mark = trace.evaluating[trace.evaluating.size() / 2];
    cases.push_back({"during an evaluation", {{std::string(kAtStep) + std::to_string(mark.step), 0}}});
  }
  if (!trace.saving.empty()) {
    const std::size_t which = (trace.saving.size() - 1) / 2;
    const std::int64_t step = trace.saving[which].step;
    cases.push_back({"as a save begins", {{saving_line(step), 0}}});
    cases.push_back({"during a save", {{saving_line(step), planner.upto(planner.save_us(which))}}});
    cases.push_back({"right after a commit", {{committed_line(step), 0}}});
    cases.push_back(
        {"during the last save", {{saving_line(last), planner.upto(planner.save_us(trace.saving.size() - 1))}}});
    cases.push_back({"after the last save", {{committed_line(last), 0}}});
  }
  if (trace.trained.size() > 8) cases.push_back({"four times in one run", planner.spread(4)});
}

}  // namespace

std::string trained_line(std::int64_t step) { return std::string(kTrained) + std::to_string(step); }

std::string saving_line(std::int64_t step) { return std::string(kSaving) + std::to_string(step); }

std::string committed_line(std::int64_t step) { return std::string(kCommitted) + std::to_string(step); }

bool is_reached(const KillPoint& point, const std::string& line) {
  if (point.line == "*") return number_after(line, kTrained).has_value();
  return line.ends_with(point.line);
}

void Trace::read_line(const std::string& line, std::int64_t at_us) {
  if (const auto step = number_after(line, kTrained)) {
    trained.push_back({*step, at_us});
  } else if (const auto saved_step = number_after(line, kSaving)) {
    saving.push_back({*saved_step, at_us});
  } else if (const auto committed_step = number_after(line, kCommitted)) {
    saved.push_back({*committed_step, at_us});
  } else if (line.find(kEvaluating) != std::string::npos) {
    if (const auto eval_step = number_after(line, kAtStep)) evaluating.push_back({*eval_step, at_us});
  } else if (started_us == 0 && trained.empty()) {
    started_us = at_us;
  }
}

std::vector<KillCase> plan_kills(const Trace& trace, const KillOptions& options, std::mt19937_64& random) {
  std::vector<KillCase> cases;
  if (trace.trained.empty()) return cases;
  Planner planner(trace, random);
  for (const std::int64_t step : options.steps) {
    cases.push_back({"at step " + std::to_string(step), {planner.at_step(step)}});
  }
  if (options.adversarial) add_adversarial(trace, planner, cases);
  if (trace.trained.size() < 2) return cases;
  for (KillPoint& point : planner.spread(options.random)) {
    char delay[32];
    std::snprintf(delay, sizeof delay, "%.1f", static_cast<double>(point.delay_us) * 1e-3);
    const std::string step = point.line.substr(kTrained.size());
    cases.push_back({"at random: step " + step + " and " + delay + " ms", {std::move(point)}});
  }
  return cases;
}

}  // namespace runner::cli
