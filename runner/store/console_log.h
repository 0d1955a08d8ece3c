#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace runner::store {

/// A line of a run's log, without its end.
struct ConsoleRow {
  std::string text;
  std::int64_t time_ms = 0;  ///< 0 if the line has none
  bool is_warning = false;   ///< or an error
};

/// A line as runner/core/log.h writes it, as text or JSON; any other line has no time.
ConsoleRow console_row(const std::string& line);

/// Whole lines of `logs/rank-0.log` from byte `from` on, which moves behind them; some megabytes at most. None where
/// there is no such file.
std::vector<ConsoleRow> read_console(const std::string& run_dir, std::int64_t& from);

}  // namespace runner::store
