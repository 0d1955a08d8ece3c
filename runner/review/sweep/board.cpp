#include "runner/review/sweep/board.h"
#include "runner/core/text/utf8.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <sstream>

#include "runner/core/log.h"
#include "runner/review/sweep/summary.h"

namespace runner::review {
namespace {

using sweep::Trial;
using sweep::TrialState;

constexpr std::int64_t kDrawInterval_ns = 250'000'000;
constexpr int kWatchInterval_ms = 500;
constexpr std::size_t kBarColumns = 24;
constexpr std::size_t kRowsAround = 4;  // heading, best, titles, and the line that the cursor is on

std::string bar(const SweepProgress& progress, const terminal::Terminal& terminal) {
  if (!progress.all || *progress.all == 0) return "";
  const double share = static_cast<double>(progress.ended()) / static_cast<double>(*progress.all);
  const auto full = std::min(static_cast<std::size_t>(std::lround(share * kBarColumns)), kBarColumns);
  std::string text;
  for (std::size_t i = 0; i < kBarColumns; ++i)
    text += i < full ? (terminal.unicode ? "\u2588" : "#") : (terminal.unicode ? "\u2591" : ".");
  return text + "  ";
}

terminal::Terminal with_width(terminal::Terminal terminal, int columns) {
  terminal.width = columns;
  return terminal;
}

}  // namespace

std::vector<std::string> SweepBoard::lines(const terminal::Terminal& terminal, std::size_t rows) {
  const auto& variants = study_.variants();
  const auto width = static_cast<std::size_t>(terminal.width);
  const SweepProgress progress = progress_of(sweep_, counters_.update(study_));
  const std::string gauge = bar(progress, terminal);
  const std::size_t gauge_columns = core::terminal_columns(gauge);
  std::vector<std::string> lines = {
      terminal::painted(gauge, terminal::Paint::kGreen, terminal) +
      terminal::cut_text(progress_text(progress), width > gauge_columns ? width - gauge_columns : 0, terminal)};
  if (const auto best = best_lines(sweep_, counters_, variants); !best.empty()) {
    const std::string more = best.size() > 1 ? " (1 of " + std::to_string(best.size()) + ")" : "";
    lines.push_back(terminal::painted(terminal::cut_text(sweep_.metric() + more + " " + best.front(), width, terminal),
                                      terminal::Paint::kBold, terminal));
  }
  const std::set<std::int64_t> running = study_.running();
  std::erase_if(first_seen_, [&running](const auto& seen) { return !running.contains(seen.first); });
  if (running.empty() || rows <= kRowsAround) return lines;
  const std::size_t hidden = running.size() - std::min(running.size(), rows - kRowsAround);
  std::vector<std::vector<terminal::Cell>> cells;
  for (const std::int64_t number : running) {
    if (cells.size() == running.size() - hidden) break;
    const Trial& trial = study_.trials().at(static_cast<std::size_t>(number));
    cells.push_back(row_of(trial, variants.at(static_cast<std::size_t>(trial.variant))));
  }
  std::istringstream table(terminal::table_text(
      {{"trial", true}, {"step", true}, {"value", true}, {"steps/s", true}, {"variant", false, true}}, cells,
      terminal));
  for (std::string line; std::getline(table, line);) lines.push_back(line);
  if (hidden > 0) lines.push_back("and " + std::to_string(hidden) + " more");
  return lines;
}

std::vector<terminal::Cell> SweepBoard::row_of(const Trial& trial, const sweep::Variant& variant) {
  std::vector<terminal::Cell> row = {
      {std::to_string(trial.number)}, {"starts"}, {""}, {""}, {sweep_.space().short_text(variant.point)}};
  const auto run = runs_.find(trial.number);
  if (!run || run->id == trial.run) return row;
  const auto total = variant.until > 0 ? variant.until : sweep_.total_steps(variant.point);
  row[1].text = std::to_string(run->step) + (total ? "/" + std::to_string(*total) : "");
  if (const auto value = run->metrics.find(sweep_.metric()); value != run->metrics.end())
    row[2].text = terminal::number_text(value->second);
  if (const auto steps_per_s = step_rate(trial.number, run->step)) row[3].text = terminal::number_text(*steps_per_s);
  return row;
}

std::optional<double> SweepBoard::step_rate(std::int64_t trial, std::int64_t step) {
  const std::int64_t now_ns = clock_.monotonic_ns();
  const auto [first, is_new] = first_seen_.try_emplace(trial, Seen{step, now_ns});
  if (step < first->second.step) first->second = {step, now_ns};  // it went back to a checkpoint
  if (step == first->second.step || now_ns <= first->second.at_ns) return std::nullopt;
  const double rate =
      static_cast<double>(step - first->second.step) * 1e9 / static_cast<double>(now_ns - first->second.at_ns);
  return rate < 100 ? std::round(rate * 10) / 10 : std::round(rate);
}

SweepLive::SweepLive(bool quiet, bool color, const sweep::Sweep& sweep, sweep::Study& study, const core::Clock& clock)
    : wanted_(!quiet && core::log_options().format == core::LogFormat::kText),
      terminal_(terminal::Terminal::of_stdout(color)),
      board_(sweep, study, clock),
      lines_(STDERR_FILENO),
      clock_(clock) {}

void SweepLive::look() {
  if (!wanted_ || clock_.monotonic_ns() < next_ns_) return;
  next_ns_ = clock_.monotonic_ns() + kDrawInterval_ns;
  const auto size = terminal::LiveLines::size_of(STDERR_FILENO);
  if (!size) return lines_.clear();
  lines_.draw(board_.lines(with_width(terminal_, size->columns), static_cast<std::size_t>(size->rows)));
}

void SweepLive::say(const std::string& line) {
  lines_.clear();
  core::log_info(line);
  next_ns_ = 0;
}

void SweepLive::warn(const std::string& line) {
  lines_.clear();
  core::log_warning(line);
  next_ns_ = 0;
}

void watch_sweep(const sweep::OpenSweep& open, const RunsContext& context) {
  SweepBoard board(open.sweep, *open.study, context.clock);
  terminal::LiveLines lines(STDOUT_FILENO);
  const auto is_at_work = [](const Trial& trial) {
    return trial.state == TrialState::kRunning || trial.state == TrialState::kWaiting;
  };
  std::string told;
  for (;;) {
    if (const auto size = terminal::LiveLines::size_of(STDOUT_FILENO)) {
      lines.draw(board.lines(with_width(context.terminal, size->columns), static_cast<std::size_t>(size->rows)));
    } else if (std::string text = sweep_heading(open); text != told) {
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
      told = std::move(text);
    }
    const auto& trials = open.study->trials();
    if (std::none_of(trials.begin(), trials.end(), is_at_work) && is_finished(open.sweep, *open.study)) break;
    poll(nullptr, 0, kWatchInterval_ms);
  }
  lines.leave();
}

}  // namespace runner::review
