#include "runner/train/observe/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runner/core/log.h"
#include "runner/core/reader_output.h"
#include "runner/core/units.h"

namespace runner::train {
namespace {

constexpr std::int64_t kBarInterval_ns = 100'000'000;
constexpr std::int64_t kLineInterval_ns = 5'000'000'000;
constexpr int kBarWidth = 24;
const std::string kClearLine = "\r\x1b[2K";

int terminal_columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar_text(double share) {
  const int full = std::clamp(static_cast<int>(std::lround(share * kBarWidth)), 0, kBarWidth);
  std::string text = "[";
  text.append(static_cast<std::size_t>(full), '#').append(static_cast<std::size_t>(kBarWidth - full), '.');
  return text + "]";
}

}  // namespace

Console::Console(Options options, const core::Clock& clock) : options_(options), clock_(clock) {
  options_.bar = options_.bar && core::log_options().format == core::LogFormat::kText;
  next_ns_ = clock_.monotonic_ns() + (options_.bar ? kBarInterval_ns : kLineInterval_ns);
}

Console::~Console() { clear(); }

bool Console::wants_update() const { return !options_.quiet && clock_.monotonic_ns() >= next_ns_; }

void Console::update(std::int64_t step, double share_done, double eta_seconds, const std::string& figures) {
  next_ns_ = clock_.monotonic_ns() + (options_.bar ? kBarInterval_ns : kLineInterval_ns);
  std::string text = "step " + std::to_string(step);
  if (options_.total_steps > 0) text += "/" + std::to_string(options_.total_steps);
  text += "  " + figures;
  if (std::isfinite(eta_seconds)) text += "  " + core::format_duration(eta_seconds) + " left";
  if (!options_.bar) {
    core::log_info(text);
    return;
  }
  char percent[16];
  std::snprintf(percent, sizeof percent, " %3.0f%% ", 100.0 * share_done);
  text = bar_text(share_done) + percent + text;
  const auto columns = static_cast<std::size_t>(terminal_columns());
  if (text.size() >= columns) text.resize(columns - 1);
  core::write_to_reader(STDERR_FILENO, kClearLine + text);
  drawn_ = true;
}

void Console::line(const std::string& text) {
  clear();
  core::log_info(text);
}

void Console::clear() {
  if (!drawn_) return;
  core::write_to_reader(STDERR_FILENO, kClearLine);
  drawn_ = false;
}

}  // namespace runner::train
