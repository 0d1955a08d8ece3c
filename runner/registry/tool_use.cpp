#include "runner/registry/tool_use.h"

#include <cstdlib>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "runner/registry/pattern.h"

namespace runner::registry {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileBytesMax = 1 << 20;

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

bool is_there(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  return text.empty() || core::read_file(path.string(), kFileBytesMax).value_or("").find(text) != std::string::npos;
}

bool is_there(const ToolSign& sign) {
  if (sign.file.starts_with("~/")) {
    const std::string home = variable("HOME");
    return !home.empty() && is_there(fs::path(home) / sign.file.substr(2), sign.holds);
  }
  std::error_code ignored;
  for (fs::path folder = fs::current_path(ignored); !folder.empty(); folder = folder.parent_path()) {
    if (is_there(folder / sign.file, sign.holds)) return true;
    if (folder == folder.parent_path()) break;
  }
  return false;
}

}  // namespace

ToolUse tool_use(const Fragment& tracker) {
  if (!tracker.configured_by) return {false, "it must be listed by name"};
  if (tracker.configured_by->empty()) return {true, ""};
  std::string why;
  for (const ToolSign& sign : *tracker.configured_by) {
    if (sign.variable.empty()) {
      if (is_there(sign)) return {true, sign.file};
      continue;
    }
    const std::string value = variable(sign.variable);
    if (value.empty()) continue;
    if (sign.pattern.empty() || matches_pattern(value, sign.pattern)) return {true, sign.variable};
    why = sign.variable + " does not match " + sign.pattern;
  }
  return {false, why};
}

}  // namespace runner::registry
