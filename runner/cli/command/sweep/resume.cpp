#include "runner/cli/group/sweep_work.h"

namespace runner::cli {

void add_sweep_resume(Command sweep, Session& session) {
  add_sweep_worker(sweep, session, "resume", "Resume a sweep that was stopped",
                   "\nExamples:\n  roux sweep resume\n  roux sweep resume tiny-gpt --max-concurrent-trials 2\n");
}

}  // namespace runner::cli
