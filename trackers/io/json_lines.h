#pragma once

#include <string>

#include "trackers/io/tracker_data.h"

/// The data of a run as lines of JSON: for the tracker `jsonl` and for plugins. Non-finite numbers are the texts "NaN",
/// "Infinity" or "-Infinity".
namespace trackers::json_lines {

std::string start(const Run& run);
/// The start of a file, before the run's id.
inline constexpr const char* kStart = R"({"type":"start","run":")";
std::string rewind(std::int64_t step);
std::string line(const Point& point);
std::string line(const Text& text);
std::string line(const Histogram& histogram);
std::string line(const Image& image);
std::string line(const Table& table);
std::string line(const Artifact& artifact);
std::string line(const ConsoleLine& console);
std::string line(const End& end);

}  // namespace trackers::json_lines
