#include "runner/sweep/study/trial_runs.h"

#include <charconv>
#include <system_error>
#include <vector>

#include "runner/core/platform/files.h"
#include "runner/store/database/text.h"
#include "runner/sweep/study/outcome.h"

namespace runner::sweep {
namespace {

constexpr std::int64_t kListInterval_ns = 500'000'000;

/// Of `NAME-3`; nothing of another name.
std::optional<std::int64_t> trial_number(const std::string& run_name, const std::string& study) {
  if (run_name.size() < study.size() + 2 || !run_name.starts_with(study) || run_name[study.size()] != '-') return {};
  std::int64_t number = 0;
  const char* end = run_name.data() + run_name.size();
  const auto read = std::from_chars(run_name.data() + study.size() + 1, end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<store::RunSummary> TrialRuns::find(std::int64_t trial) {
  const std::int64_t now_ns = clock_.monotonic_ns();
  if (!listed_ns_ || now_ns - *listed_ns_ >= kListInterval_ns) {
    listed_ns_ = now_ns;
    list_folders();
  }
  const auto folder = newest_.find(trial);
  if (folder == newest_.end()) return std::nullopt;
  return read_trial_run(output_dir_ + "/" + folder->second, clock_);
}

void TrialRuns::list_folders() {
  newest_.clear();
  const std::vector<std::string> folders = core::list_folder(output_dir_).value();
  for (const std::string& folder : folders) {
    const auto name = store::parse_folder_name(folder);
    const auto trial = name ? trial_number(name->run_name, study_.info().name) : std::nullopt;
    if (trial) newest_[*trial] = folder;  // the list is sorted, and so are ids
  }
}

}  // namespace runner::sweep
