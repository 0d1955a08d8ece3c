#include "runner/cli/group/import/launch/visible_gpus.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "runner/core/text/text.h"
#include "runner/words/draft.h"

namespace runner::cli {
namespace {

using core::Node;

constexpr const char *kName = "$CUDA_VISIBLE_DEVICES", *kProcesses = "num_processes", *kAll = "launch.num_processes";

/// `0,2`; empty for anything else, such as the names of GPUs.
std::vector<std::int64_t> numbers_of(const std::string& value) {
  std::vector<std::int64_t> numbers;
  for (const Node& item : words::items_of(Node::string(value))) {
    const std::string text = item.scalar_text();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0) return {};
    numbers.push_back(number);
  }
  return numbers;
}

/// Whether these are the first ones, which need no names.
bool are_first(const std::vector<std::int64_t>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

void take_visible_gpus(const std::string& value, bool counts, const core::Location& at, Node& launcher,
                       core::Diagnostics& diagnostics) {
  std::vector<std::int64_t> ids = numbers_of(value);
  const Node *machines = launcher.find("num_machines"), *processes = launcher.find(kProcesses);
  const bool has_machines = launcher.find("deepspeed_hostfile") != nullptr ||
                            (machines != nullptr && machines->is_integer() && machines->as_integer() > 1);
  if (ids.empty() || has_machines || launcher.find("gpu_ids") != nullptr) {
    const std::string why = ids.empty()    ? "names no numbers of GPUs"
                            : has_machines ? "is that of one machine"
                                           : "is beside other GPUs by name";
    return diagnostics.notice(at, std::string(kName) + " " + why + ", and is not read",
                              "write it before `roux run`, too");
  }
  const auto seen = static_cast<std::int64_t>(ids.size());
  const auto set = [&](const char* key, Node node) {
    node.set_location(at);
    launcher.set(key, std::move(node), at);
  };
  std::int64_t used = 1;
  if (processes != nullptr && processes->is_integer()) {
    used = processes->as_integer();
  } else if (counts || launcher.find(kAll) != nullptr) {
    used = seen;
    launcher.erase(kAll);
    if (used > 1) set(kProcesses, Node::integer(used));
  }
  if (used < seen) {
    diagnostics.notice(at,
                       std::string(kName) + " names " + core::counted(seen, "GPU", "GPUs") +
                           ", and the command starts " + core::counted(used, "process", "processes") +
                           ": a process trains on one GPU",
                       "write launch: {num_processes: " + std::to_string(seen) + "} into the recipe to use all");
    ids.resize(static_cast<std::size_t>(used));
  }
  if (!are_first(ids)) {
    set("gpu_ids", Node::string(core::joined(ids, ",", [](std::int64_t id) { return std::to_string(id); })));
  }
  if (!launcher.location().known() && !launcher.entries().empty()) launcher.set_location(at);
}

}  // namespace runner::cli
