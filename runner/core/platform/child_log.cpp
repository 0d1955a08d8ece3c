#include "runner/core/platform/child_log.h"

#include "runner/core/log.h"

namespace runner::core {

void ChildLog::say(const std::string& line) {
  if (++lines_ <= lines_max_) return log_warning(who_ + ": " + line);
  if (lines_ > lines_max_ + 1) return;
  log_warning(who_ + " prints more than " + std::to_string(lines_max_) + " lines; the rest is omitted");
}

}  // namespace runner::core
