#include "runner/artifact/draft_names.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "runner/core/platform/files.h"

namespace runner::artifact {
namespace {

constexpr std::string_view kDraft = ".draft-";
constexpr std::string_view kDeleted = ".deleted-";

std::optional<pid_t> owner_of(std::string_view name) {
  if (name.empty() || name.front() != '.') return std::nullopt;
  for (const std::string_view mark : {kDraft, kDeleted}) {
    const std::size_t at = name.rfind(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = name.substr(at + mark.size());
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    if (error == std::errc() && end == digits.data() + digits.size() && pid > 0) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%06lld", static_cast<long long>(step));
  return name;
}

bool is_checkpoint_name(const std::string& name) {
  constexpr std::string_view kLead = "step-";
  return name.size() > kLead.size() && name.starts_with(kLead) &&
         name.find_first_not_of("0123456789", kLead.size()) == std::string::npos;
}

std::string draft_name(const std::string& name) { return draft_name(name, ::getpid()); }

std::string draft_name(const std::string& name, std::int64_t process) {
  return '.' + name + std::string(kDraft) + std::to_string(process);
}

std::string deleted_name(const std::string& name) {
  return '.' + name + std::string(kDeleted) + std::to_string(::getpid());
}

/// A zombie is dead, too: its parent may wait late or never, like the first process of a container.
bool is_process_alive(std::int64_t process) {
  if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return false;
  constexpr std::int64_t kStatBytesMax = 4 << 10;
  const auto stat = core::read_file("/proc/" + std::to_string(process) + "/stat", kStatBytesMax);
  if (!stat) return true;
  const std::size_t name_end = stat.value().rfind(") ");  // the name in parentheses may hold anything
  return name_end == std::string::npos || stat.value().compare(name_end + 2, 1, "Z") != 0;
}

bool is_leftover(const std::string& name) {
  const std::optional<pid_t> owner = owner_of(name);
  if (!owner) return false;
  return *owner == ::getpid() || !is_process_alive(*owner);
}

}  // namespace runner::artifact
