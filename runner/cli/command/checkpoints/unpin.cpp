#include "runner/cli/group/checkpoints.h"

namespace runner::cli {

void add_checkpoints_unpin(Command group, Session& session) {
  const auto request = std::make_shared<review::KeepRequest>();
  Command command =
      add_keep_command(group, "unpin", "Let a pinned checkpoint be removed automatically again", *request);
  command.callback([request, &session] {
    session.command = [request, &session] {
      print_answer(review::checkpoints_unpin(session.runs_dir(), *request), session);
    };
  });
}

}  // namespace runner::cli
