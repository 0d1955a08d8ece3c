#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace tests {

/// Processes that descend from `ancestor` by at least `generations`, as they are at this moment.
inline std::vector<pid_t> descendants(pid_t ancestor, int generations) {
  std::map<pid_t, pid_t> parents;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end = text.rfind(')');  // of the name, which may hold anything; the state, and then the parent
    if (end != std::string::npos) parents[std::stoi(name)] = std::stoi(text.substr(end + 4));
  }
  std::vector<pid_t> found;
  for (const auto& [pid, parent] : parents) {
    int distance = 1;
    pid_t at = parent;
    for (; at > 1 && at != ancestor; ++distance) at = parents.contains(at) ? parents.at(at) : 0;
    if (at == ancestor && distance >= generations) found.push_back(pid);
  }
  return found;
}

}  // namespace tests
