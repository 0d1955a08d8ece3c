#include "runner/cli/group/checkpoints.h"

namespace runner::cli {

void add_checkpoints_verify(CLI::App& group, Session& session) {
  add_folder_command(group, session, "verify", "Read every byte of the checkpoints and compare it with the manifests",
                     [](const std::string& folder, Session& own) {
                       const review::CheckpointsVerdict verdict = review::checkpoints_verify(folder);
                       if (verdict.whole + verdict.damaged == 0) return own.fail("no checkpoint in " + folder);
                       std::fputs(verdict.text.c_str(), stdout);
                       if (verdict.damaged > 0) own.exit_code = core::kExitFailed;
                     });
}

}  // namespace runner::cli
