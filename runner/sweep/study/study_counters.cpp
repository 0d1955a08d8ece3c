#include "runner/sweep/study/study_counters.h"

#include <algorithm>
#include <utility>

#include "runner/core/text/text.h"

namespace runner::sweep {

const StudyCounters& StudyCounters::update(Study& study) {
  const std::vector<Trial>& trials = study.trials();
  const std::int64_t replicates = sweep_.config().replicates;
  std::set<std::int64_t> changed(study.changes().begin() + static_cast<std::ptrdiff_t>(changes_seen_),
                                 study.changes().end());
  changes_seen_ = study.changes().size();
  counted_.resize(trials.size());
  summaries_.resize(trials.size() / static_cast<std::size_t>(replicates));
  written_.resize(summaries_.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // in which they were written down
  for (const std::int64_t variant : changed) {
    std::int64_t written = 0;
    for (std::int64_t i = variant * replicates; i < (variant + 1) * replicates; ++i) {
      const Trial& trial = trials.at(static_cast<std::size_t>(i));
      add(trial);
      written = std::max(written, trial.changed);
    }
    order.emplace_back(written, variant);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [written, variant] : order) put(summary_of(variant, replicates, trials), written);
  return *this;
}

void StudyCounters::add(const Trial& trial) {
  std::optional<Counted>& before = counted_[static_cast<std::size_t>(trial.number)];
  const auto add = [this](const Counted& one, std::int64_t sign) {
    counts_[static_cast<std::size_t>(one.state)] += sign;
    took_ms_ += sign * one.took_ms;
    spent_.steps += sign * one.spent.steps;
    spent_.samples += sign * one.spent.samples;
    spent_.tokens += sign * one.spent.tokens;
  };
  if (before) add(*before, -1);
  before = {trial.state, is_finished(trial.state) ? trial.ended_ms - trial.started_ms : 0, trial.spent};
  add(*before, 1);
}

void StudyCounters::put(const VariantSummary& summary, std::int64_t written) {
  const auto at = static_cast<std::size_t>(summary.variant);
  since_improvement_.erase({std::exchange(written_[at], written), summary.variant});
  summaries_[at] = summary;
  const bool counts = summary.state == TrialState::kComplete && summary.value;
  front_.put(summary.variant, counts ? sweep_.signed_values(*summary.value, summary.others) : std::vector<double>());
  if (!is_finished(summary.state)) return;
  since_improvement_.emplace(written, summary.variant);
  if (!counts) return;
  const double value = sweep_.signed_value(*summary.value);
  if (improved_to_ && value >= *improved_to_ - sweep_.config().stop.min_delta) return;
  improved_to_ = value;
  since_improvement_.clear();
}

std::int64_t StudyCounters::ended() const {
  return count(TrialState::kComplete) + count(TrialState::kPruned) + count(TrialState::kFailed);
}

std::optional<std::int64_t> StudyCounters::to_come() const {
  if (!to_come_) {
    const auto variants = sweep_.variants_to_come();
    to_come_.emplace(variants ? std::optional(*variants * sweep_.config().replicates) : std::nullopt);
  }
  return *to_come_;
}

std::vector<VariantSummary> StudyCounters::front() const {
  std::vector<VariantSummary> list;
  for (const std::int64_t variant : front_.variants()) list.push_back(summaries_[static_cast<std::size_t>(variant)]);
  return list;
}

std::string trial_line(const Sweep& sweep, Study& study, const StudyCounters& counters, std::int64_t number) {
  const std::vector<Variant>& variants = study.variants();
  const std::vector<Trial>& trials = study.trials();
  const Trial& trial = trials.at(static_cast<std::size_t>(number));
  std::string line = "trial " + std::to_string(number);
  if (trial.state == TrialState::kPruned) line += " pruned at step " + std::to_string(trial.step);
  if (trial.value) line += "  " + sweep.metric() + " " + short_number(*trial.value);
  for (std::size_t i = 0; i < trial.others.size(); ++i) {
    line += "  " + sweep.objectives()[i + 1].name + " " + short_number(trial.others[i]);
  }
  const auto text_of = [&](std::int64_t variant) {
    return sweep.space().short_text(variants.at(static_cast<std::size_t>(variant)).point);
  };
  line += "  " + text_of(trial.variant);
  if (sweep.config().replicates > 1) line += " seed+" + std::to_string(trial.replicate);
  const auto front = counters.front();
  if (sweep.objectives().size() > 1) {
    line += "  front " + core::counted(static_cast<std::int64_t>(front.size()), "variant", "variants");
  } else if (!front.empty()) {
    const VariantSummary* best = &front.front();
    line += "  best " + short_number(*best->value) +
            (best->variant == trial.variant ? "" : " (" + text_of(best->variant) + ")");
  }
  line += "  " + std::to_string(counters.ended());
  if (const auto all = counters.to_come()) line += " of " + std::to_string(*all);
  return line + " done";
}

}  // namespace runner::sweep
