#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/review/compare/recipe_diff.h"
#include "runner/review/compare/significance.h"
#include "runner/review/runs.h"

namespace runner::review {

enum class GroupValue { kLast, kBest };
enum class GroupTest { kWelch, kMannWhitney };

struct RunsGroupsRequest {
  std::vector<std::string> runs = {};  ///< empty, with an empty `filter`: all finished runs
  std::string filter = "";
  std::string metric = "";  ///< "": the first default column of lists
  GroupValue value = GroupValue::kLast;
  GroupTest test = GroupTest::kWelch;  ///< the test of the verdict
  std::string format = "text";         ///< text, json
};

/// Runs of one recipe that differ in their seeds.
struct ReplicateGroup {
  std::string name;  ///< A, B, ..., Z, AA
  std::vector<store::RunSummary> runs;
  std::vector<double> values;                        ///< of the metric, of finished runs that have a finite one
  std::vector<std::int64_t> steps;                   ///< of these values
  std::vector<const store::RunSummary*> unfinished;  ///< of `runs`: what they have is not their result
  /// Of `runs`: computed the same bits as an earlier one, and so are no further sample. Without a value of their own.
  std::vector<const store::RunSummary*> copies;
  Spread spread;

  std::size_t without_value() const { return runs.size() - values.size() - unfinished.size() - copies.size(); }
};

/// The comparison of two groups.
struct GroupVerdict {
  std::size_t a = 0, b = 0;  ///< positions of the groups
  WelchTest welch;
  RankTest ranks;
  double p = 1;  ///< of the chosen test, or of ranks without a Welch test; with Holm's correction for several groups
  bool differ = false;
};

struct Replicates {
  std::string metric;
  std::vector<ReplicateGroup> groups;   ///< in the order of their first run
  std::vector<DifferingRow> differing;  ///< between the groups: one value per group
  std::vector<GroupVerdict> verdicts;   ///< each other group against the first one with two values
};

/// Keys in which runs of one group may differ: seeds, and keys without effect on the results.
bool is_replicate_key(const std::string& key);

Replicates replicates_of(const std::vector<store::RunSummary>& runs, const RunsGroupsRequest& request);
/// `B is lower by 0.035 (95 % interval 0.012 to 0.058): Welch's t-test, p = 0.0082; Mann-Whitney U test, p = 0.032`,
/// or that no difference is shown.
std::string verdict_text(const Replicates& replicates, const GroupVerdict& verdict, GroupTest test);

std::optional<std::string> runs_groups(const RunsContext& context, const RunsGroupsRequest& request,
                                       core::Diagnostics& diagnostics);

}  // namespace runner::review
