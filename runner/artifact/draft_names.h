#pragma once

#include <cstdint>
#include <string>

namespace runner::artifact {

/// `step-000500`
std::string checkpoint_name(std::int64_t step);
/// True for names of that form.
bool is_checkpoint_name(const std::string& name);

/// Hidden names beside it: `.step-000500.draft-4711` while it is written, `.step-000500.deleted-4711` while it is away.
std::string draft_name(const std::string& name);
std::string draft_name(const std::string& name, std::int64_t process);  ///< of that process
std::string deleted_name(const std::string& name);

/// Whether a process of this machine, by its number, is still at work.
bool is_process_alive(std::int64_t process);

/// True for hidden names of processes that are gone, and of this one (which is at work on another save by now).
bool is_leftover(const std::string& name);

}  // namespace runner::artifact
