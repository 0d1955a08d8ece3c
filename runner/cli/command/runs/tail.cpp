#include "runner/review/tail.h"

#include <poll.h>

#include "runner/cli/group/runs.h"

namespace runner::cli {
namespace {

/// Sleeps; Ctrl-C ends the program.
class Sleep final : public trackers::Waiter {
 public:
  bool wait(std::int64_t ms) override {
    std::fflush(stdout);
    poll(nullptr, 0, static_cast<int>(ms));
    return true;
  }
};

void tail(const review::RunsTailRequest& request, Session& session) {
  core::Diagnostics diagnostics;
  Sleep sleep;
  const auto write = [](const std::string& line) { std::fwrite(line.data(), 1, line.size(), stdout); };
  review::runs_tail(runs_context(session), request, write, sleep, diagnostics);
  session.show(diagnostics);
  if (diagnostics.has_errors()) session.exit_code = core::kExitUsage;
}

}  // namespace

void add_runs_tail(Command runs, Session& session) {
  const auto request = std::make_shared<review::RunsTailRequest>();
  Command command = runs.add_subcommand("tail", "Follow what a run logs, until it ends");
  command.add_option("RUN", request->run, kRunText);
  command.add_option("--lines", request->lines, "Number of existing lines to show first")
      .type_name("N")
      .in_range(0, 100'000);
  command.add_option("--metric", request->metrics, "Metric to show; `*` matches any text; repeatable")
      .type_name("NAME")
      .allow_extra_args(false);
  command.add_option("--rank", request->rank, "Show the log of this rank instead")
      .type_name("N")
      .in_range(0, 1'000'000);
  command.footer(
      "\nExamples:\n"
      "  roux runs tail\n"
      "  roux runs tail tiny-gpt --metric 'val/*'\n"
      "  roux runs tail last --rank 0\n");
  command.callback([request, &session] { session.command = [request, &session] { tail(*request, session); }; });
}

}  // namespace runner::cli
