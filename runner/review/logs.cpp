#include "runner/review/logs.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <utility>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/core/text/utf8.h"
#include "runner/store/console_log.h"

namespace runner::review {
namespace {

/// The log of a rank, read line by line.
class RankLog {
 public:
  RankLog(int rank, const std::string& path) : rank_(rank), file_(path, std::ios::binary) { next(); }

  int rank() const { return rank_; }
  bool at_end() const { return at_end_; }
  /// Of the line, or of the last one before it that had a time.
  std::int64_t time_ms() const { return time_ms_; }

  /// Writes the line and those without a time that follow it.
  void write_message(const std::function<void(const std::string&)>& write) {
    do {
      write("[rank " + std::to_string(rank_) + "] " + core::escape_for_terminal(line_) + "\n");
      next();
    } while (!at_end_ && !has_time_);
  }

 private:
  void next() {
    at_end_ = !std::getline(file_, line_);
    const std::int64_t time_ms = at_end_ ? 0 : store::console_row(line_).time_ms;
    has_time_ = time_ms > 0;
    if (has_time_) time_ms_ = time_ms;
  }

  int rank_;
  std::ifstream file_;
  std::string line_;
  std::int64_t time_ms_ = 0;
  bool has_time_ = false;
  bool at_end_ = false;
};

/// By rank.
std::vector<RankLog> logs_in(const std::string& folder) {
  std::vector<RankLog> logs;
  const auto names = core::list_folder(folder);
  for (const std::string& name : names.value_or({})) {
    int rank = 0, read = 0;
    std::sscanf(name.c_str(), "rank-%9d.log%n", &rank, &read);
    if (!core::check_is_file(folder + "/" + name)) continue;
    if (read > 0 && name == "rank-" + std::to_string(rank) + ".log") logs.emplace_back(rank, folder + "/" + name);
  }
  std::sort(logs.begin(), logs.end(), [](const RankLog& a, const RankLog& b) { return a.rank() < b.rank(); });
  return logs;
}

}  // namespace

void runs_logs(const RunsContext& context, const RunsLogsRequest& request,
               const std::function<void(const std::string&)>& write, core::Diagnostics& diagnostics) {
  const auto run = find_run(context, request.run, diagnostics);
  if (!run) return;
  const std::string folder = run->run_dir + "/logs";
  std::vector<RankLog> logs = logs_in(folder);
  if (logs.empty()) return diagnostics.error({}, folder + " has no logs", "the run keeps no logs of its processes");
  while (true) {
    std::erase_if(logs, [](const RankLog& log) { return log.at_end(); });
    if (logs.empty()) return;
    const auto earlier = [](const RankLog& a, const RankLog& b) { return a.time_ms() < b.time_ms(); };
    RankLog& next = request.in_order ? *std::min_element(logs.begin(), logs.end(), earlier) : logs.front();
    next.write_message(write);
  }
}

}  // namespace runner::review
