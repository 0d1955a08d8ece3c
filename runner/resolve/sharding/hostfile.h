#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/core/diagnostics.h"
#include "runner/core/location.h"

namespace runner::resolve {

/// A machine of DeepSpeed's hostfile with its slots, a process and a GPU each.
struct HostSlots {
  std::string host;
  std::vector<int> slots;  ///< ascending: 0 to N - 1, or what a filter left
};

/// The lines `worker-0 slots=4` of a hostfile, where `#` begins a comment. Nothing after an error: a line that is none,
/// a machine that is there twice, or no machine at all.
std::optional<std::vector<HostSlots>> read_hostfile(const std::shared_ptr<const core::Source>& file,
                                                    core::Diagnostics& diagnostics);

/// What a filter leaves, in the order of the hostfile: machines with `@` between them, each with the slots that are
/// meant, or all of them: `worker-0@worker-1:0,2`. `includes`: the filter says what stays, otherwise what does not.
/// Nothing after an error, which names `written`, at `location`: a machine or a slot that there is not, or none left.
std::optional<std::vector<HostSlots>> filtered(std::vector<HostSlots> hosts, const std::string& filter, bool includes,
                                               const std::string& written, const core::Location& location,
                                               core::Diagnostics& diagnostics);

/// The slots of the machine that has most, which begin with those of every other one; nothing if there are none such.
/// `launch.gpu_ids` says the same for all machines.
std::optional<std::vector<int>> common_slots(const std::vector<HostSlots>& hosts);

}  // namespace runner::resolve
