#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner/sweep/spec/sweep.h"
#include "runner/sweep/study/pareto_front.h"
#include "runner/sweep/study/study.h"
#include "runner/sweep/study/variant_summary.h"

namespace runner::sweep {

/// Totals of a study: trials by state, the best variants, the cost. Updated incrementally, so that a query costs only
/// what changed since the last one. Borrows the sweep.
class StudyCounters {
 public:
  explicit StudyCounters(const Sweep& sweep) : sweep_(sweep) {}

  /// The present state; use the same study each time.
  const StudyCounters& update(Study& study);

  std::int64_t count(TrialState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::int64_t ended() const;
  /// Total number of trials; nothing if unknown.
  std::optional<std::int64_t> to_come() const;
  /// Duration of ended trials.
  std::int64_t took_ms() const { return took_ms_; }
  const Spent& spent() const { return spent_; }
  /// Of all variants, by number.
  const std::vector<VariantSummary>& summaries() const { return summaries_; }
  /// As front_of.
  std::vector<VariantSummary> front() const;
  /// The best complete variants by the first objective.
  std::vector<std::int64_t> best(std::size_t count) const { return front_.best(count); }
  /// Variants that have ended since the best one was improved on by more than `stop.min_delta`.
  std::int64_t without_improvement() const { return static_cast<std::int64_t>(since_improvement_.size()); }

 private:
  /// What is counted of a trial.
  struct Counted {
    TrialState state;
    std::int64_t took_ms;
    Spent spent;
  };
  void add(const Trial& trial);
  void put(const VariantSummary& summary, std::int64_t written);

  const Sweep& sweep_;
  std::size_t changes_seen_ = 0;
  std::vector<std::optional<Counted>> counted_;  ///< by trial
  std::array<std::int64_t, 5> counts_{};         ///< by state
  std::int64_t took_ms_ = 0;
  Spent spent_;
  std::vector<VariantSummary> summaries_;
  std::vector<std::int64_t> written_;  ///< by variant: number of the transaction that wrote it last
  ParetoFront front_;
  std::optional<double> improved_to_;                                  ///< signed
  std::set<std::pair<std::int64_t, std::int64_t>> since_improvement_;  ///< when they were written, and their numbers
  mutable std::optional<std::optional<std::int64_t>> to_come_;         ///< on first use: a grid has to be counted
};

/// `trial 3  val/loss 0.0640  optimizer.lr=0.01  best 0.0612 (trial 1)  4 of 9 done`.
std::string trial_line(const Sweep& sweep, Study& study, const StudyCounters& counters, std::int64_t trial);

}  // namespace runner::sweep
