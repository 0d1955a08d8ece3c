#include "runner/cli/group/checkpoints.h"

namespace runner::cli {
namespace {

void verify(const std::string& folder, const std::string& format, Session& session) {
  const review::CheckpointsReport verdict = review::checkpoints_verify(folder);
  if (verdict.whole + verdict.damaged == 0) return session.fail("no checkpoint in " + folder);
  std::fputs((format == "json" ? verdict.json : verdict.text).c_str(), stdout);
  if (verdict.damaged > 0) session.exit_code = core::kExitFailed;
}

}  // namespace

void add_checkpoints_verify(Command group, Session& session) {
  add_folder_command(group, session, "verify", "Read every byte of the checkpoints and compare it with the manifests",
                     verify);
}

}  // namespace runner::cli
