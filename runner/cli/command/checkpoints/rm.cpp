#include <unistd.h>

#include <iostream>

#include "runner/cli/flags.h"
#include "runner/cli/group/checkpoints.h"

namespace runner::cli {
namespace {

bool ask_on_terminal(const std::string& question) {
  std::fprintf(stderr, "%s [y/N] ", question.c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void remove(const review::KeepRequest& request, Session& session) {
  if (!request.yes && ::isatty(STDIN_FILENO) != 1) {
    return session.fail("rm asks for confirmation, but standard input is not a terminal", "add --yes");
  }
  print_answer(review::checkpoints_rm(session.runs_dir(), request, core::system_clock(), ask_on_terminal), session);
}

}  // namespace

void add_checkpoints_rm(Command group, Session& session) {
  const auto request = std::make_shared<review::KeepRequest>();
  Command command = add_keep_command(group, "rm", "Remove checkpoints", *request,
                                     "  roux checkpoints rm 100 200 300 --run runs/tiny-gpt-1a2b --yes\n");
  add_yes(command, request->yes);
  command.add_flag("--force", request->force,
                   "Remove checkpoints that are pinned, damaged, the only one left, or of a run in use, too");
  command.callback([request, &session] { session.command = [request, &session] { remove(*request, session); }; });
}

}  // namespace runner::cli
