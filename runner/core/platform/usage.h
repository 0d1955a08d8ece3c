#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/clock.h"

namespace runner::core {

/// Usage of this machine, and of it by this process, from the kernel's files. One reading takes about fifty
/// microseconds. Omits what a kernel does not report.
class UsageReader {
 public:
  /// `folder`: a folder on the disk to measure. `proc`: location of the kernel's files.
  UsageReader(std::string folder, const Clock& clock, std::string proc = "/proc");

  using Reading = std::pair<std::string, double>;
  /// Under MLflow's names where it has one. Shares of time are of that since the last call, the first one since the
  /// reader was made; bytes that were moved are counted from there, too. `process_cpu_percentage` is 100 for one core
  /// that was never idle, the other percentages are of the whole machine.
  std::vector<Reading> read();

 private:
  /// Ever growing counts.
  struct Counters {
    double machine_busy = 0, machine_all = 0;  // ticks of all processors
    double process_ticks = 0;
    double read_bytes = 0, written_bytes = 0;   // of this process, from and to disks
    double received_bytes = 0, sent_bytes = 0;  // of the machine, not to itself
    std::int64_t ns = 0;
  };
  Counters counters() const;
  std::optional<double> meminfo(const char* name) const;  // bytes

  const std::string folder_;
  const Clock& clock_;
  const std::string proc_;
  const Counters first_;
  Counters last_;
};

}  // namespace runner::core
