#include "runner/registry/pattern.h"

#include <map>
#include <mutex>

#include "runner/core/error.h"
#include "runner/core/language/pattern.h"

namespace runner::registry {

bool is_pattern(const std::string& pattern) { return core::Pattern::make(pattern).ok(); }

namespace {

/// Once a pattern, of which there are as many as the schemas have.
const core::Result<core::Pattern>& compiled_once(const std::string& pattern) {
  static std::mutex mutex;
  static std::map<std::string, core::Result<core::Pattern>, std::less<>> all;
  const std::lock_guard lock(mutex);
  const auto found = all.find(pattern);
  return found != all.end() ? found->second : all.emplace(pattern, core::Pattern::make(pattern)).first->second;
}

}  // namespace

bool matches_pattern(const std::string& text, const std::string& pattern) {
  const auto& compiled = compiled_once(pattern);
  RUNNER_ASSERT(compiled.ok(), "parse_fragment has checked the pattern");
  return text.find('\0') == std::string::npos && compiled.value().is_in(text);
}

}  // namespace runner::registry
