#include "runner/review/compare/groups.h"
#include "runner/cli/group/runs.h"

namespace runner::cli {

void add_runs_groups(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsGroupsRequest>();
  Command command =
      runs.add_subcommand("groups", "Compare groups of runs that differ in their seed: mean, interval, significance");
  command.add_option("RUN", request->runs, kRunText);
  command.add_option("--filter", request->filter, kFilterText).type_name("EXPR");
  command.add_option("--metric", request->metric, "Metric to compare; by default the first one that lists show")
      .type_name("NAME");
  add_choice<review::GroupValue>(command, "--value", "Value of each run to compare", request->value,
                                 {{"last", review::GroupValue::kLast}, {"best", review::GroupValue::kBest}});
  add_choice<review::GroupTest>(
      command, "--test", "Significance test", request->test,
      {{"welch", review::GroupTest::kWelch}, {"mann-whitney", review::GroupTest::kMannWhitney}});
  add_format(command, request->format, {"text", "json"});
  command.footer(
      "\nExamples:\n"
      "  roux runs groups\n"
      "  roux runs groups --filter 'tag:ablation' --metric val/loss --value best\n");
  on_runs_call<review::RunsGroupsRequest>(command, session, request, review::runs_groups);
}

}  // namespace runner::cli
