#include "runner/cli/group/checkpoints.h"

namespace runner::cli {

void add_checkpoints_list(CLI::App& group, Session& session) {
  add_folder_command(group, session, "list", "List the checkpoints of a run", [](const auto& folder, Session& own) {
    const terminal::Terminal terminal = terminal::Terminal::of_stdout(own.color);
    std::fputs(review::checkpoints_list(folder, terminal, core::system_clock().wall_ms()).c_str(), stdout);
  });
}

}  // namespace runner::cli
