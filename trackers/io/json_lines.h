#pragma once

#include <string>

#include "trackers/io/tracker_data.h"

/// What a run tells, each thing as one line of JSON with its end: the tracker `jsonl`, and what a plugin reads. What is
/// no number is the text "NaN", "Infinity" or "-Infinity".
namespace trackers::json_lines {

std::string start(const Run& run);
/// How that begins, before the run's id.
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
