#include "runner/core/platform/port_process.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace runner::core {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListens = "0A";  // a state in /proc/net/tcp

/// `socket:[INODE]` of each socket that listens at the port.
std::set<std::string> sockets_at(std::uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, skipped, inode;
      words >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) words >> skipped;
      words >> inode;
      const std::size_t colon = local.rfind(':');
      if (colon == std::string::npos || state != kListens) continue;
      if (std::stoul(local.substr(colon + 1), nullptr, 16) == port) sockets.insert("socket:[" + inode + "]");
    }
  }
  return sockets;
}

bool has_one_of(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (sockets.contains(fs::read_symlink(entry->path(), gone).string())) return true;
  }
  return false;
}

}  // namespace

std::string process_on_port(std::uint16_t port) {
  const std::set<std::string> sockets = sockets_at(port);
  if (sockets.empty()) return "";
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string pid = entry->path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); })) continue;
    if (!has_one_of(entry->path(), sockets)) continue;
    std::string name;
    std::getline(std::ifstream(entry->path() / "comm"), name);
    return "process " + pid + (name.empty() ? "" : " (" + name + ")");
  }
  return "";
}

}  // namespace runner::core
