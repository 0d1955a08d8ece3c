#include "runner/review/runs.h"
#include "runner/core/text.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "runner/cli/commands.h"
#include "runner/cli/runs_command.h"

namespace runner::cli {
namespace {

/// `id,name optimizer.lr` -> three names.
void add_columns(std::vector<std::string>& columns, const std::string& text) {
  std::string name;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ') {
      name += c;
    } else if (!name.empty()) {
      columns.push_back(std::exchange(name, {}));
    }
  }
}

void add_runs_list(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsListRequest>();
  CLI::App* command = runs.add_subcommand("list", "Show the runs, newest first");
  add_list_flags(*command, *request);
  command->add_flag("--all", request->all, "With the runs of --smoke and those that are archived");
  command->add_flag("--trash", request->trash, "Those that `roux runs rm` took away");
  command->footer(
      "\nExamples:\n"
      "  roux runs list\n"
      "  roux runs list --filter 'val/loss < 2 and optimizer.type == adamw' --sort val/loss\n"
      "  roux runs list --filter 'tag:keep and created >= yesterday and status in (finished, stopped)'\n"
      "  roux runs list --group-by optimizer.type --sort val/loss\n"
      "  roux runs list --columns id,optimizer.lr,val/loss --format csv\n");
  on_runs_call<review::RunsListRequest>(*command, session, request, review::runs_list);
}

void add_branch(CLI::App& command, std::string& branch, const char* text) {
  command.add_option("--branch", branch, text)->type_name("N|all")->check([](const std::string& value) {
    const bool digits =
        !value.empty() && value.size() < 10 && value.find_first_not_of("0123456789") == std::string::npos;
    return digits || value == "all" ? std::string() : "must be the number of a branch or all, got \"" + value + "\"";
  });
}

void add_runs_show(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsShowRequest>();
  CLI::App* command = runs.add_subcommand("show", "Show one run: state, metrics, checkpoints, samples");
  command->add_option("RUN", request->run, kRunText)->required();
  command->add_option("--metric", request->metric, "Draw this metric")->type_name("NAME");
  add_branch(*command, request->branch, "Metrics as this branch saw them, or, with --metric, `all` of them drawn");
  add_runs_format(*command, request->format, {"text", "json"});
  command->footer(
      "\nExamples:\n"
      "  roux runs show last\n"
      "  roux runs show tiny-gpt --metric val/loss\n"
      "  roux runs show tiny-gpt --metric loss --branch all\n");
  on_runs_call<review::RunsShowRequest>(*command, session, request, review::runs_show);
}

void add_runs_compare(CLI::App& runs, Session& session) {
  const auto request = std::make_shared<review::RunsCompareRequest>();
  CLI::App* command = runs.add_subcommand("compare", "Put runs side by side: settings that differ, last metrics");
  command->add_option("RUN", request->runs, kRunText)->required()->expected(2, -1);
  command->add_option("--metric", request->metric, "Draw this metric of all of them")->type_name("NAME");
  add_branch(*command, request->branch, "Draw it as this branch of each saw it, or `all` of them; else the newest");
  add_runs_format(*command, request->format, {"text", "json"});
  command->footer(
      "\nExamples:\n"
      "  roux runs compare tiny-gpt last\n"
      "  roux runs compare 1qezc2h 1qezc2g --metric loss\n\n"
      "Shows which of them is best. `roux runs diff A B` shows why two of them differ.\n");
  on_runs_call<review::RunsCompareRequest>(*command, session, request, review::runs_compare);
}

}  // namespace

void add_runs_format(CLI::App& command, std::string& format, const std::vector<std::string>& known) {
  const std::string list = core::joined(known);
  command.add_option("--format", format, "One of " + list)
      ->type_name("FORMAT")
      ->check([known, list](const std::string& value) {
        for (const std::string& name : known) {
          if (value == name) return std::string();
        }
        return "must be one of " + list + ", got \"" + value + "\"";
      });
}

void add_list_flags(CLI::App& command, review::RunsListRequest& request) {
  command
      .add_option(
          "--filter", request.filter,
          "Which: names of `show`, metrics and recipe keys with == != < <= > >= ~ =~ in, tag:NAME, and, or, not")
      ->type_name("EXPR");
  command.add_option("--sort", request.sort, "By which value; -KEY or KEY:desc for the largest first")
      ->type_name("KEY");
  command
      .add_option_function<std::vector<std::string>>(
          "--columns",
          [&request](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_columns(request.columns, text);
          },
          "What to show, separated by commas: id, name, status, step, val/loss, optimizer.lr, ...")
      ->type_name("NAMES")
      ->allow_extra_args(false);
  command.add_option("--group-by", request.group_by, "Together with those that say the same here")->type_name("KEY");
  add_runs_format(command, request.format, {"table", "json", "csv"});
  command.add_option("--limit", request.limit, "At most so many")->type_name("N")->check(CLI::PositiveNumber);
}

review::RunsContext runs_context(const Session& session) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  return {session.runs_dir(), core::system_clock(), terminal::Terminal::of_stdout(color)};
}

void add_runs(CLI::App& app, Session& session) {
  CLI::App* runs = app.add_subcommand("runs", "Look at the runs there are, name and keep them");
  runs->footer(
      "\nExamples:\n"
      "  roux runs list\n"
      "  roux runs show last\n"
      "  roux runs compare tiny-gpt last\n");
  add_runs_list(*runs, session);
  add_runs_show(*runs, session);
  add_runs_compare(*runs, session);
  add_runs_review(*runs, session);
  add_runs_keep(*runs, session);
  add_runs_transfer(*runs, session);
}

}  // namespace runner::cli
