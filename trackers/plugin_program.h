#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trackers/tracker.h"

namespace trackers {

struct PluginProgram {
  std::vector<std::string> command;
  std::string options;        ///< JSON, told in the first line
  bool acknowledges = false;  ///< it answers each flush
  std::int64_t answer_timeout_ms = 60'000;
};

/// A tracker that is a program: it is started with the run, and reads its data as JSON lines: those of json_lines.h,
/// and `options`, `rewind` and `flush`.
std::unique_ptr<Tracker> start_plugin_program(const PluginProgram& program);

}  // namespace trackers
