#include "runner/cli/data/progress_line.h"

#include <unistd.h>

namespace runner::cli {
namespace {

constexpr std::chrono::milliseconds kBetween{100};

}  // namespace

ProgressLine::ProgressLine(bool wanted)
    : shown_(wanted && terminal::LiveLines::size_of(STDERR_FILENO).has_value()), lines_(STDERR_FILENO) {}

void ProgressLine::draw(const std::function<std::string()>& text) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kBetween) return;
  drawn_ = now;
  lines_.draw({text()});
}

void ProgressLine::clear() {
  if (shown_) lines_.clear();
}

}  // namespace runner::cli
