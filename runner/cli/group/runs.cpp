#include "runner/cli/group/runs.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

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

}  // namespace

void add_list_flags(Command command, Session& session, review::RunsListRequest& request, const std::string& rows) {
  const std::string examples = rows == "runs" ? "id, name, status, step" : "trial, state, duration";
  command
      .add_option("--filter", request.filter,
                  "Show only " + rows + " that match: columns and recipe keys with == != < <= > >= ~ =~ in" +
                      (rows == "runs" ? ", tag:NAME" : "") + ", and, or, not")
      .type_name("EXPR");
  command
      .add_option("--sort", request.sort, "Sort by this column or recipe key; -KEY or KEY:desc for the largest first")
      .type_name("KEY");
  command
      .add_list_function(
          "--columns",
          [&request](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_columns(request.columns, text);
          },
          "Columns to show, separated by commas: " + examples + ", val/loss, optimizer.lr, ...")
      .type_name("NAMES")
      .allow_extra_args(false);
  command.add_option("--group-by", request.group_by, "Group " + rows + " by this column or recipe key")
      .type_name("KEY");
  read_table_as_text(add_format(command, request.format, {"text", "json", "csv"}), session);
  command.add_option("--limit", request.limit, "Maximum number of rows").type_name("N").positive();
}

void add_branch_flag(Command command, std::string& branch, const char* text) {
  command.add_option("--branch", branch, text).type_name("N|all").check([](const std::string& value) {
    const bool digits =
        !value.empty() && value.size() < 10 && value.find_first_not_of("0123456789") == std::string::npos;
    return digits || value == "all" ? std::string() : "must be the number of a branch or all, got \"" + value + "\"";
  });
}

void add_curve_flags(Command command, review::CurvesRequest& curves) {
  command
      .add_list_function(
          "--metric",
          [&curves](const std::vector<std::string>& names) {
            curves.metrics.insert(curves.metrics.end(), names.begin(), names.end());
          },
          "Metric to plot; `*` matches any text; repeatable")
      .type_name("NAME")
      .allow_extra_args(false);
  add_choice<review::XAxis>(command, "--x", "Quantity of the x axis", curves.x,
                            {{"step", review::XAxis::kStep},
                             {"time", review::XAxis::kTime},
                             {"epoch", review::XAxis::kEpoch},
                             {"tokens", review::XAxis::kTokens},
                             {"samples", review::XAxis::kSamples}});
  command.add_option("--smooth", curves.smoothing, "Weight of the moving average: 0 for none, 0.9 for smooth curves")
      .type_name("WEIGHT")
      .in_range(0.0, 0.9999);
}

review::RunsContext runs_context(const Session& session) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  return {session.runs_dir(), core::system_clock(), terminal::Terminal::of_stdout(color)};
}

}  // namespace runner::cli
