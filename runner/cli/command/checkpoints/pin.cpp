#include "runner/cli/group/checkpoints.h"

namespace runner::cli {

void add_checkpoints_pin(Command group, Session& session) {
  const auto request = std::make_shared<review::KeepRequest>();
  Command command = add_keep_command(group, "pin", "Keep a checkpoint: automatic removal skips it", *request);
  command.callback([request, &session] {
    session.command = [request, &session] {
      print_answer(review::checkpoints_pin(session.runs_dir(), *request), session);
    };
  });
}

}  // namespace runner::cli
