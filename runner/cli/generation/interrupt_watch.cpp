#include "runner/cli/generation/interrupt_watch.h"

#include "runner/cli/prediction/work_signals.h"

namespace runner::cli {
namespace {

// A handler can access nothing else.
volatile std::sig_atomic_t interrupts = 0;
volatile std::sig_atomic_t patience_of_watch = 0;

void count(int) {
  if (interrupts >= patience_of_watch) end_work(SIGINT);
  interrupts = interrupts + 1;
}

}  // namespace

InterruptWatch::InterruptWatch(int patience) {
  interrupts = 0;
  patience_of_watch = patience;
  struct sigaction action = {};
  action.sa_handler = count;
  sigaction(SIGINT, &action, &before_);
}

InterruptWatch::~InterruptWatch() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptWatch::received() { return interrupts != 0; }
void InterruptWatch::forget() { interrupts = 0; }

}  // namespace runner::cli
