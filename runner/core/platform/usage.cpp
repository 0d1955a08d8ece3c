#include "runner/core/platform/usage.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "runner/core/platform/machine.h"

namespace runner::core {
namespace {

constexpr double kMegabyte = 1e6;

double share(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

/// The first line: `cpu  user nice system idle iowait irq softirq steal`, in ticks.
void read_machine_ticks(std::ifstream file, double& busy, double& all) {
  std::string word;
  file >> word;
  double ticks = 0;
  for (int field = 0; field < 8 && file >> ticks; ++field) {
    all += ticks;
    if (field != 3 && field != 4) busy += ticks;  // idle, and idle while a disk works
  }
}

/// Fields 14 and 15, time in the program and in the kernel. The second one is a name in brackets and may hold spaces.
double process_ticks(std::ifstream file) {
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

/// `NAME: NUMBER` of a file with such lines.
std::optional<double> named_number(std::ifstream file, const std::string& name) {
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    double value = 0;
    if (std::istringstream(line.substr(name.size() + 1)) >> value) return value;
  }
  return std::nullopt;
}

/// Two lines of headings, then `eth0: BYTES packets errs drop fifo frame compressed multicast BYTES ...`.
void read_network(std::ifstream file, double& received, double& sent) {
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name;
    std::istringstream(line.substr(0, colon)) >> name;
    if (name == "lo") continue;
    std::istringstream fields(line.substr(colon + 1));
    double first = 0, ninth = 0, skipped = 0;
    fields >> first;
    for (int field = 2; field < 9; ++field) fields >> skipped;
    if (!(fields >> ninth)) continue;
    received += first;
    sent += ninth;
  }
}

}  // namespace

UsageReader::UsageReader(std::string folder, const Clock& clock, std::string proc)
    : folder_(std::move(folder)), clock_(clock), proc_(std::move(proc)), first_(counters()), last_(first_) {}

UsageReader::Counters UsageReader::counters() const {
  Counters now;
  read_machine_ticks(std::ifstream(proc_ + "/stat"), now.machine_busy, now.machine_all);
  now.process_ticks = process_ticks(std::ifstream(proc_ + "/self/stat"));
  now.read_bytes = named_number(std::ifstream(proc_ + "/self/io"), "read_bytes").value_or(0);
  now.written_bytes = named_number(std::ifstream(proc_ + "/self/io"), "write_bytes").value_or(0);
  read_network(std::ifstream(proc_ + "/net/dev"), now.received_bytes, now.sent_bytes);
  now.ns = clock_.monotonic_ns();
  return now;
}

std::optional<double> UsageReader::meminfo(const char* name) const {
  const auto kilobytes = named_number(std::ifstream(proc_ + "/meminfo"), name);
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

std::vector<UsageReader::Reading> UsageReader::read() {
  std::vector<Reading> readings;
  const Counters now = counters();
  const Counters before = std::exchange(last_, now);
  if (now.machine_all > before.machine_all) {
    readings.emplace_back("cpu_utilization_percentage",
                          share(now.machine_busy - before.machine_busy, now.machine_all - before.machine_all));
  }
  if (now.ns > before.ns) {
    const double seconds = (now.process_ticks - before.process_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
    readings.emplace_back("process_cpu_percentage", share(seconds, static_cast<double>(now.ns - before.ns) * 1e-9));
  }
  const auto total = meminfo("MemTotal"), available = meminfo("MemAvailable");
  if (total && available) {
    readings.emplace_back("system_memory_usage_megabytes", (*total - *available) / kMegabyte);
    readings.emplace_back("system_memory_usage_percentage", share(*total - *available, *total));
  }
  double pages = 0;
  if (std::ifstream(proc_ + "/self/statm") >> pages >> pages) {  // the second number: those that are in memory
    const double bytes = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
    readings.emplace_back("process_memory_rss_megabytes", bytes / kMegabyte);
    readings.emplace_back("process_memory_percentage", share(bytes, static_cast<double>(memory_limit())));
  }
  struct statvfs disk = {};
  if (statvfs(folder_.c_str(), &disk) == 0 && disk.f_blocks > 0) {
    const double block = static_cast<double>(disk.f_frsize);
    const double used = static_cast<double>(disk.f_blocks - disk.f_bfree) * block;
    const double free = static_cast<double>(disk.f_bavail) * block;
    readings.emplace_back("disk_usage_megabytes", used / kMegabyte);
    readings.emplace_back("disk_usage_percentage", share(used, used + free));
    readings.emplace_back("disk_available_megabytes", free / kMegabyte);
  }
  readings.emplace_back("process_disk_read_megabytes", (now.read_bytes - first_.read_bytes) / kMegabyte);
  readings.emplace_back("process_disk_write_megabytes", (now.written_bytes - first_.written_bytes) / kMegabyte);
  readings.emplace_back("network_receive_megabytes", (now.received_bytes - first_.received_bytes) / kMegabyte);
  readings.emplace_back("network_transmit_megabytes", (now.sent_bytes - first_.sent_bytes) / kMegabyte);
  return readings;
}

}  // namespace runner::core
