#include "trackers/io/json_lines.h"

#include "runner/core/text/utf8.h"
#include "trackers/io/json_text.h"
#include "trackers/io/numbers.h"

namespace trackers::json_lines {
namespace {

using runner::core::json_quote;

constexpr NumberWords kWords = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};

/// `{"type":"text","name":"sample","step":3,"time":1790000001.000`, to be continued.
std::string begun(const char* type, const std::string& name, std::int64_t step, std::int64_t time_ms) {
  return std::string(R"({"type":")") + type + R"(","name":)" + json_quote(name) + R"(,"step":)" + std::to_string(step) +
         R"(,"time":)" + seconds_text(time_ms);
}

template <typename Thing>
std::string begun(const char* type, const Thing& thing) {
  return begun(type, thing.name, thing.step, thing.time_ms);
}

}  // namespace

std::string start(const Run& run) {
  return kStart + run.id + R"(","name":)" + json_quote(run.name) + R"(,"config":)" +
         runner::core::to_json(run.config, -1) + "}\n";
}

std::string rewind(std::int64_t step) { return R"({"type":"rewind","step":)" + std::to_string(step) + "}\n"; }

std::string line(const Point& point) {
  return begun("metric", *point.name, point.step, point.time_ms) + R"(,"value":)" + number_text(point.value, kWords) +
         "}\n";
}

std::string line(const Text& text) { return begun("text", text) + R"(,"text":)" + json_quote(text.text) + "}\n"; }

std::string line(const Histogram& histogram) {
  std::string counts;
  for (const double count : histogram.counts) counts += (counts.empty() ? "" : ",") + number_text(count, kWords);
  return begun("histogram", histogram) + R"(,"least":)" + number_text(histogram.least, kWords) + R"(,"most":)" +
         number_text(histogram.most, kWords) + R"(,"counts":[)" + counts + "]}\n";
}

std::string line(const Image& image) {
  return begun("image", image) + R"(,"path":)" + json_quote(image.path) + R"(,"caption":)" + json_quote(image.caption) +
         "}\n";
}

std::string line(const Table& table) { return begun("table", table) + R"(,"table":)" + json_text(table) + "}\n"; }

std::string line(const Artifact& artifact) {
  return begun("artifact", artifact) + R"(,"kind":)" + json_quote(artifact.kind) + R"(,"path":)" +
         json_quote(artifact.path) + "}\n";
}

std::string line(const ConsoleLine& console) {
  return std::string(R"({"type":"console","error":)") + (console.is_error ? "true" : "false") + R"(,"time":)" +
         seconds_text(console.time_ms) + R"(,"text":)" + json_quote(console.text) + "}\n";
}

std::string line(const End& end) {
  return R"({"type":"end","ending":)" + json_quote(to_text(end.ending)) + R"(,"reason":)" + json_quote(end.reason) +
         R"(,"time":)" + seconds_text(end.time_ms) + R"(,"summary":)" + runner::core::to_json(end.summary, -1) + "}\n";
}

}  // namespace trackers::json_lines
