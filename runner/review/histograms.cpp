#include "runner/review/histograms.h"
#include "runner/core/text/utf8.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace runner::review {
namespace {

using core::Node;

constexpr std::size_t kRowsShown = 24;
constexpr std::size_t kBarsMax = 32;

std::vector<double> counts_of(const Node& data) {
  std::vector<double> counts;
  const Node* list = data.find("counts");
  if (list == nullptr) return counts;
  for (const Node& count : list->items()) counts.push_back(count.as_double());
  // Neighbours together, until they fit.
  const std::size_t together = (counts.size() + kBarsMax - 1) / kBarsMax;
  std::vector<double> bars;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i % together == 0) bars.push_back(0);
    bars.back() += counts[i];
  }
  return bars;
}

std::string figure(const Node& data, const char* name) {
  const Node* value = data.find(name);
  return value != nullptr && value->is_number() ? terminal::number_text(value->as_double()) : "-";
}

std::vector<terminal::Cell> row_of(const Node& data, const terminal::Terminal& terminal) {
  const Node* name = data.find("name");
  const Node* not_finite = data.find("not_finite");
  const bool bad = not_finite != nullptr && not_finite->as_double() > 0;
  return {{"  " + (name != nullptr ? core::escape_for_terminal(name->scalar_text()) : "")},
          {figure(data, "min")},
          {bars_text(counts_of(data), terminal)},
          {figure(data, "max")},
          {figure(data, "mean")},
          {figure(data, "std")},
          {bad ? not_finite->scalar_text() + " not finite" : "", terminal::Paint::kRed}};
}

}  // namespace

std::string bars_text(const std::vector<double>& counts, const terminal::Terminal& terminal) {
  static constexpr std::array<const char*, 9> kBlocks = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                         "\u2585", "\u2586", "\u2587", "\u2588"};
  static constexpr std::array<const char*, 5> kMarks = {" ", ".", ":", "+", "#"};
  const double most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  const double levels = terminal.unicode ? kBlocks.size() - 1 : kMarks.size() - 1;
  std::string text;
  for (const double count : counts) {
    // Rounded up: a single value among millions is still to be seen.
    const auto level = static_cast<std::size_t>(most > 0 ? std::ceil(count / most * levels) : 0);
    text += terminal.unicode ? kBlocks[level] : kMarks[level];
  }
  return text;
}

std::string histograms_text(const std::vector<store::EventRow>& events, const terminal::Terminal& terminal) {
  std::int64_t last = -1;
  for (const store::EventRow& event : events) {
    if (event.kind == "histogram") last = std::max(last, event.step);
  }
  if (last < 0) return "";
  std::vector<std::vector<terminal::Cell>> rows;
  std::size_t left_out = 0;
  for (const store::EventRow& event : events) {
    if (event.kind != "histogram" || event.step != last) continue;
    if (rows.size() < kRowsShown) {
      rows.push_back(row_of(event.data, terminal));
    } else {
      ++left_out;
    }
  }
  const std::vector<terminal::Column> columns = {{"  at step " + std::to_string(last), false, true},
                                                 {"min", true, false},
                                                 {"", false, false},
                                                 {"max", true, false},
                                                 {"mean", true, false},
                                                 {"std", true, false},
                                                 {"", false, false}};
  std::string text = terminal::table_text(columns, rows, terminal);
  if (left_out > 0) text += "  and " + std::to_string(left_out) + " more: --format json shows all\n";
  return text;
}

}  // namespace runner::review
