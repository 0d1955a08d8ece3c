#include "runner/core/platform/program_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "runner/core/text/text.h"

namespace runner::core {
namespace {

constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";  // where PATH is unset

bool is_program(const std::string& path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : kUsualPath;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    // An empty one means the current folder.
    if (!folder.starts_with('/')) continue;
    if (std::string file = std::string(folder) + "/" + name; is_program(file)) return file;
  }
  return "";
}

std::optional<bool> starts_programs() {
  const char* value = std::getenv(kProgramsVariable);
  if (value == nullptr || *value == '\0') return true;
  const std::string word = lower(value);
  for (const char* off : {"off", "0", "false", "no"}) {
    if (word == off) return false;
  }
  return std::nullopt;
}

}  // namespace runner::core
