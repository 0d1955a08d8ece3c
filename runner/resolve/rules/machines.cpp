#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/registry/registry.h"

namespace runner::resolve {
namespace {

using core::Node;

constexpr const char* kMachines = "launch.num_machines";
constexpr const char* kProcesses = "launch.num_processes";
constexpr const char* kRank = "launch.machine_rank";
constexpr const char* kAddress = "launch.main_process_ip";
constexpr const char* kHosts = "launch.hosts";
constexpr std::size_t kNameBytesMax = 253;  // of DNS
constexpr const char* kGpuIds = "launch.gpu_ids";

/// Null where validation refused it.
const Node* name_of(const Node& host) {
  const Node* name = host.find("host");
  return name != nullptr && name->is_string() ? name : nullptr;
}

std::int64_t processes_max() {
  const registry::Fragment* launch = registry::Registry::builtin().find("section", "launch");
  const registry::Property* processes = launch != nullptr ? launch->find("num_processes") : nullptr;
  RUNNER_ASSERT(processes != nullptr && processes->maximum, "schemas/section/launch.json limits num_processes");
  return static_cast<std::int64_t>(*processes->maximum);
}

/// The processes of each machine of `hosts`, one where a machine beside others with slots has none; empty where no
/// slots are written.
std::vector<std::int64_t> slots_of(const SettledTree& tree) {
  std::vector<std::int64_t> slots;
  bool is_written = false;
  const Node* hosts = tree.value(kHosts);
  for (std::size_t i = 0; hosts != nullptr && i < hosts->items().size(); ++i) {
    const auto number = tree.integer(std::string(kHosts) + "[" + std::to_string(i) + "].slots");
    is_written = is_written || number;
    slots.push_back(number.value_or(1));
  }
  return is_written ? slots : std::vector<std::int64_t>();
}

std::int64_t sum_of(const std::vector<std::int64_t>& slots) {
  return std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
}

/// Nothing when hosts and num_machines contradict each other, which is said.
std::optional<std::int64_t> settled_number(SettledTree& tree) {
  const Node* hosts = tree.value(kHosts);
  const auto written = tree.integer(kMachines);
  const auto listed = static_cast<std::int64_t>(hosts != nullptr ? hosts->items().size() : 1);
  if (hosts != nullptr && written && *written != listed) {
    tree.error(kMachines, "num_machines is " + std::to_string(*written) + ", but hosts lists " + std::to_string(listed),
               "remove num_machines");
    return std::nullopt;
  }
  if (!written) tree.fill(kMachines, Node::integer(listed), hosts != nullptr ? "the number of launch.hosts" : "one");
  return written.value_or(listed);
}

/// Keys of several machines on one would do nothing.
void one_machine(SettledTree& tree) {
  if (tree.integer(kRank).value_or(0) > 0) {
    tree.error(kRank, "machine_rank is " + std::to_string(*tree.integer(kRank)) + ", but num_machines is 1",
               "set num_machines, the same on all machines");
  }
  if (tree.given("launch.min_machines") && tree.integer("launch.min_machines") != 1) {
    tree.error("launch.min_machines", "min_machines is set, but num_machines is 1", "set num_machines");
  }
}

/// The supervisors of the machines speak IPv4.
void address_of_machine(SettledTree& tree, const char* path, const std::string& address) {
  // `USER@` is for ssh.
  const bool is_host = std::string_view(path) == kHosts;
  const std::size_t at = is_host ? address.find('@') : std::string::npos;
  const std::string name = at == std::string::npos ? address : address.substr(at + 1);
  const bool is_plain = std::all_of(address.begin(), address.end(), [is_host](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == ':' || (is_host && c == '@');
  });
  const bool has_empty_part = name.empty() || name[0] == '.' || name.find("..") != std::string::npos || at == 0;
  if (has_empty_part || name[0] == '-' || address[0] == '-' || !is_plain || name.find('@') != std::string::npos ||
      name.size() > kNameBytesMax) {
    tree.error(path, core::quote(address) + " is not a host" + (is_host ? ", or is an option to ssh" : ""),
               std::string("use a name or an IPv4 address, ") + (is_host ? "as for `ssh NAME`" : "such as 10.0.0.1"));
    return;
  }
  const std::size_t colons = static_cast<std::size_t>(std::count(address.begin(), address.end(), ':'));
  if (colons == 0) return;
  if (colons == 1) {
    tree.error(path, address + " includes a port",
               is_host ? "set the port with main_process_port, and processes of a machine with {host: NAME, slots: N}"
                       : "set the port with main_process_port");
  } else {
    tree.error(path, address + " is an IPv6 address; only IPv4 is supported",
               "use an IPv4 address or a host name that resolves to one");
  }
}

void addresses(SettledTree& tree) {
  if (const auto address = tree.text(kAddress)) address_of_machine(tree, kAddress, *address);
  const Node* hosts = tree.value(kHosts);
  if (hosts == nullptr) return;
  std::set<std::string> seen;
  for (const Node& host : hosts->items()) {
    const Node* name = name_of(host);
    if (name == nullptr) continue;
    address_of_machine(tree, kHosts, name->as_string());
    if (seen.insert(name->as_string()).second) continue;
    tree.error(kHosts, "hosts lists " + name->as_string() + " twice",
               "list each host once; num_processes may exceed the number of hosts");
  }
}

void several_machines(SettledTree& tree, std::int64_t number) {
  const std::string count = std::to_string(number);
  if (const auto rank = tree.integer(kRank); rank && *rank >= number) {
    tree.error(kRank, "machine_rank is " + std::to_string(*rank) + ", but num_machines is " + count,
               "the machines are numbered from 0 to " + std::to_string(number - 1));
  }
  if (const auto least = tree.integer("launch.min_machines"); least && *least > number) {
    tree.error("launch.min_machines", "min_machines is " + std::to_string(*least) + ", but num_machines is " + count,
               "no restart could have that many");
  }
  const std::int64_t slots = sum_of(slots_of(tree));
  if (const auto processes = tree.integer(kProcesses);
      slots > 0 && slots <= processes_max() && processes.value_or(1) != slots) {
    tree.error(kProcesses,
               "num_processes is " + std::to_string(processes.value_or(1)) + ", but the slots of hosts add up to " +
                   std::to_string(slots),
               "remove num_processes, or change the slots");
  } else if (processes.value_or(1) < number) {
    tree.error(kProcesses,
               "num_processes is " + std::to_string(processes.value_or(1)) + ", but num_machines is " + count +
                   ": num_processes counts the processes of all machines",
               "use at least one process per machine");
  }
  addresses(tree);
}

struct AutomaticProcesses {
  std::int64_t number = 1;  ///< on each machine
  std::string why;
};

AutomaticProcesses automatic_on_machine(const SettledTree& tree) {
  const std::string device = tree.text("device").value_or("auto");
  if (device != "auto" && device != "cuda") return {1, "one per machine, because device is " + device};
  const std::int64_t usable = tree.usable_gpus();
  if (usable == 0) return {1, "one per machine, because no GPU can be used"};
  const Node* ids = tree.value(kGpuIds);
  const bool chosen = ids != nullptr && ids->is_sequence();
  return {chosen ? static_cast<std::int64_t>(ids->items().size()) : usable, "one per GPU"};
}

}  // namespace

namespace {

/// The sum of the slots, unless another number is written.
void processes_of_slots(SettledTree& tree, std::int64_t slots) {
  const std::int64_t most = processes_max();
  const std::string why = "the slots of launch.hosts";
  if (slots > most) {
    tree.error(kHosts, why + " are " + std::to_string(slots) + " processes; the maximum is " + std::to_string(most),
               "use fewer slots");
    slots = most;  // what follows finds nothing else wrong
  }
  if (tree.text(kProcesses)) {
    tree.replace_auto(kProcesses, slots, why);
  } else {
    tree.fill(kProcesses, Node::integer(slots), why);
  }
}

}  // namespace

void automatic_processes(SettledTree& tree) {
  if (const std::int64_t slots = sum_of(slots_of(tree)); slots > 0) return processes_of_slots(tree, slots);
  if (!tree.text(kProcesses)) return;  // a number; the only word is `auto`
  const Node* hosts = tree.value(kHosts);
  const std::int64_t machines = std::max<std::int64_t>(
      1, tree.integer(kMachines).value_or(hosts != nullptr ? static_cast<std::int64_t>(hosts->items().size()) : 1));
  const AutomaticProcesses here = automatic_on_machine(tree);
  const std::int64_t all = here.number * machines, most = processes_max();
  if (all > most) {
    tree.error(kProcesses,
               "num_processes is auto, which is " + std::to_string(all) + ": " + std::to_string(here.number) +
                   " on each of " + core::counted(machines, "machine", "machines") + "; the maximum is " +
                   std::to_string(most),
               "set the number of processes");
  }
  tree.replace_auto(kProcesses, std::min(all, most), here.why);
}

void machines(SettledTree& tree) {
  for (const char* path : {"launch", kHosts, kMachines, kRank, kProcesses}) {
    if (tree.was_refused(path)) return;
  }
  const std::optional<std::int64_t> number = settled_number(tree);
  if (!number) return;
  if (*number == 1) return one_machine(tree);
  several_machines(tree, *number);
}

void gpus(SettledTree& tree) {
  const std::string device = tree.text("device").value_or("auto");
  const std::int64_t processes = tree.integer(kProcesses).value_or(1);
  const std::vector<std::int64_t> slots = slots_of(tree);
  const std::int64_t even = (processes - 1) / std::max<std::int64_t>(1, tree.integer(kMachines).value_or(1)) + 1;
  const std::int64_t here = slots.empty() ? even : *std::max_element(slots.begin(), slots.end());
  if (const Node* ids = tree.value(kGpuIds); ids != nullptr && ids->is_sequence()) {
    std::set<std::int64_t> different;
    for (const Node& id : ids->items()) {
      if (id.is_integer()) different.insert(id.as_integer());
    }
    const auto listed = static_cast<std::int64_t>(ids->items().size());
    if (static_cast<std::int64_t>(different.size()) < listed) {
      tree.error(kGpuIds, "gpu_ids lists a GPU twice: two processes cannot share one", "list each GPU once");
    } else if (listed < here) {
      tree.error(kGpuIds,
                 "gpu_ids lists " + core::counted(listed, "GPU", "GPUs") + ", but there are " + std::to_string(here) +
                     " processes on a machine",
                 "list a GPU for each process, or use fewer processes");
    }
    if (device == "cpu") tree.warning(kGpuIds, "launch.gpu_ids has no effect: device is cpu", "remove one of them");
  }
  if (!device.starts_with("cuda")) return;
  if (processes > 1 && device != "cuda") {
    tree.error("device",
               "device is " + device + ", but num_processes is " + std::to_string(processes) +
                   ": each process needs a GPU of its own",
               "write device: cuda; launch.gpu_ids chooses the GPUs");
  }
}

}  // namespace runner::resolve
