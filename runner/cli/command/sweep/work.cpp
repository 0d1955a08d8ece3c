#include "runner/cli/group/sweep_work.h"

namespace runner::cli {

void add_sweep_work(Command sweep, Session& session) {
  add_sweep_worker(sweep, session, "work", "Join a running sweep as a worker, from another shell or machine",
                   "\nExample:\n  roux sweep work tiny-gpt --no-wait\n");
}

}  // namespace runner::cli
