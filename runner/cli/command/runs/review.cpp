#include <poll.h>

#include <algorithm>
#include <utility>

#include "runner/cli/runs_command.h"
#include "runner/core/text.h"
#include "runner/review/compare/diff.h"
#include "runner/review/compare/groups.h"
#include "runner/review/compare/report.h"
#include "runner/review/plot_file.h"
#include "runner/review/tail.h"

namespace runner::cli {
namespace {

void add_diff(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsDiffRequest>();
  CLI::App* command =
      runs.add_subcommand("diff", "Show why two runs differ: recipe, machine, code, the step where metrics part");
  command->add_option("A", request->a, kRunText)->required();
  command->add_option("B", request->b, kRunText)->required();
  add_runs_format(*command, request->format, {"text", "json"});
  command->footer(
      "\nExample:\n"
      "  roux runs diff tiny-gpt last\n\n"
      "`roux runs compare` puts any number of runs side by side, and shows which is best.\n");
  on_runs_call<review::RunsDiffRequest>(*command, session, request, review::runs_diff);
}

/// Sleeps; whoever has enough ends the program.
class Sleep final : public trackers::Waiter {
 public:
  bool wait(std::int64_t ms) override {
    std::fflush(stdout);
    poll(nullptr, 0, static_cast<int>(ms));
    return true;
  }
};

void add_tail(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsTailRequest>();
  CLI::App* command = runs.add_subcommand("tail", "Follow what a run logs, until it ends");
  command->add_option("RUN", request->run, kRunText);
  command->add_option("--lines", request->lines, "So many of what there is already")
      ->type_name("N")
      ->check(CLI::Range(0, 100'000));
  command->add_option("--metric", request->metrics, "Only this one; `*` stands for any text; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--rank", request->rank, "The log of this process instead")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  command->footer(
      "\nExamples:\n"
      "  roux runs tail\n"
      "  roux runs tail tiny-gpt --metric 'val/*'\n"
      "  roux runs tail last --rank 0\n");
  command->fallthrough();
  command->callback([request, &session] {
    session.command = [request, &session] {
      core::Diagnostics diagnostics;
      Sleep sleep;
      const auto write = [](const std::string& line) { std::fwrite(line.data(), 1, line.size(), stdout); };
      review::runs_tail(runs_context(session), *request, write, sleep, diagnostics);
      session.show(diagnostics);
      if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
    };
  });
}

/// A flag whose value is one of a few words.
template <typename Value>
void add_choice(CLI::App& command, const std::string& flag, const std::string& text, Value& value,
                const std::vector<std::pair<std::string, Value>>& known) {
  const std::string list = core::joined(known, ", ", &std::pair<std::string, Value>::first);
  const auto place = [known](const std::string& word) {
    std::size_t at = 0;
    while (at < known.size() && known[at].first != word) ++at;
    return at;
  };
  command
      .add_option_function<std::string>(
          flag, [&value, known, place](const std::string& word) { value = known[place(word)].second; },
          text + ": " + list)
      ->type_name("WORD")
      ->check([known, place, list](const std::string& word) {
        return place(word) < known.size() ? std::string() : "must be one of " + list + ", got \"" + word + "\"";
      });
}

void add_curves(CLI::App& command, review::CurvesRequest& curves) {
  command
      .add_option_function<std::vector<std::string>>(
          "--metric",
          [&curves](const std::vector<std::string>& names) {
            curves.metrics.insert(curves.metrics.end(), names.begin(), names.end());
          },
          "One to draw; `*` stands for any text; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_choice<review::XAxis>(command, "--x", "What to draw it over", curves.x,
                            {{"step", review::XAxis::kStep},
                             {"time", review::XAxis::kTime},
                             {"epoch", review::XAxis::kEpoch},
                             {"tokens", review::XAxis::kTokens},
                             {"samples", review::XAxis::kSamples}});
  command.add_option("--smooth", curves.smoothing, "Moving average: 0 is none, 0.9 is smooth")
      ->type_name("WEIGHT")
      ->check(CLI::Range(0.0, 0.9999));
}

void add_plot(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsPlotRequest>();
  CLI::App* command = runs.add_subcommand("plot", "Draw metrics of runs, on the terminal or into a file");
  command
      ->add_option_function<std::string>(
          "METRIC",
          [request](const std::string& name) { request->curves.metrics.insert(request->curves.metrics.begin(), name); },
          "Its name; `*` stands for any text")
      ->required();
  command->add_option("RUN", request->runs, kRunText);
  command->add_option("--filter", request->filter, kFilterText)->type_name("EXPR");
  add_curves(*command, request->curves);
  command->add_flag("--log-x", request->log_x, "A logarithmic axis");
  command->add_flag("--log-y", request->log_y, "A logarithmic axis");
  review::add_picture_flags(*command, request->picture);
  command->footer(
      "\nExamples:\n"
      "  roux runs plot val/loss\n"
      "  roux runs plot loss tiny-gpt last --smooth 0.9 --log-y\n"
      "  roux runs plot loss --metric val/loss --filter 'tag:keep' --x time --svg loss.svg --png loss.png\n");
  on_runs_call<review::RunsPlotRequest>(*command, session, request, review::runs_plot);
}

void add_groups(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsGroupsRequest>();
  CLI::App* command =
      runs.add_subcommand("groups", "Runs of one recipe but for its seeds: mean, interval, and which group is better");
  command->add_option("RUN", request->runs, kRunText);
  command->add_option("--filter", request->filter, kFilterText)->type_name("EXPR");
  command->add_option("--metric", request->metric, "What is compared; else what lists show first")->type_name("NAME");
  add_choice<review::GroupValue>(*command, "--value", "Which value of each run", request->value,
                                 {{"last", review::GroupValue::kLast}, {"best", review::GroupValue::kBest}});
  add_choice<review::GroupTest>(
      *command, "--test", "What decides whether groups differ", request->test,
      {{"welch", review::GroupTest::kWelch}, {"mann-whitney", review::GroupTest::kMannWhitney}});
  add_runs_format(*command, request->format, {"text", "json"});
  command->footer(
      "\nExamples:\n"
      "  roux runs groups\n"
      "  roux runs groups --filter 'tag:ablation' --metric val/loss --value best\n");
  on_runs_call<review::RunsGroupsRequest>(*command, session, request, review::runs_groups);
}

void add_report(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsReportRequest>();
  CLI::App* command = runs.add_subcommand("report", "Write one file about runs: tables, pictures, differences, notes");
  command->add_option("RUN", request->runs, kRunText);
  command->add_option("--filter", request->filter, kFilterText)->type_name("EXPR");
  add_curves(*command, request->curves);
  command->add_flag("--log-y", request->log_y, "A logarithmic axis");
  command->add_option("--title", request->title, "What it is called")->type_name("TEXT");
  command->add_option("--output", request->output, "Into this file: HTML, or Markdown where it ends with .md")
      ->type_name("FILE");
  command->footer(
      "\nExamples:\n"
      "  roux runs report tiny-gpt last --output tiny.html\n"
      "  roux runs report --filter 'tag:ablation' --metric val/loss --output ablation.md\n");
  on_runs_call<review::RunsReportRequest>(*command, session, request, review::runs_report);
}

}  // namespace

void add_runs_review(CLI::App& runs, Session& session) {
  add_diff(runs, session);
  add_tail(runs, session);
  add_plot(runs, session);
  add_groups(runs, session);
  add_report(runs, session);
}

}  // namespace runner::cli
