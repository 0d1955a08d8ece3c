#include "runner/cli/group/checkpoints.h"

namespace runner::cli {
namespace {

void list(const std::string& folder, const std::string& format, Session& session) {
  const terminal::Terminal terminal = terminal::Terminal::of_stdout(session.color);
  const std::string text = format == "json"
                               ? review::checkpoints_json(folder)
                               : review::checkpoints_list(folder, terminal, core::system_clock().wall_ms());
  std::fputs(text.c_str(), stdout);
}

}  // namespace

void add_checkpoints_list(Command group, Session& session) {
  add_folder_command(group, session, "list", "List the checkpoints of a run", list);
}

}  // namespace runner::cli
