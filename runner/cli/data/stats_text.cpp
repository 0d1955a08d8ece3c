#include "runner/cli/data/stats_text.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "runner/cli/data/fields_text.h"
#include "runner/cli/data/view_text.h"
#include "runner/core/node.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/review/histograms.h"

namespace runner::cli {
namespace {

using core::Node;
using engine::PaddingFigures;

std::string percent(std::int64_t part, std::int64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

/// Names to the left, figures to the right of them.
class Rows {
 public:
  void add(const std::string& name, const std::string& value) {
    constexpr std::size_t kWidth = 18;
    text_ += "  " + name + std::string(name.size() < kWidth ? kWidth - name.size() : 1, ' ') + value + "\n";
  }
  void count(const std::string& name, std::int64_t value) { add(name, core::with_commas(value)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string padding_text(const PaddingFigures& figures) {
  return percent(figures.padding, figures.positions) + " of " +
         core::counted_large(figures.positions, "position", "positions") + " in " +
         core::counted_large(figures.batches, "batch", "batches");
}

void add_lengths(const engine::DataStats& stats, const terminal::Terminal& terminal, Rows& rows) {
  const auto& lengths = stats.lengths;
  if (lengths.least == lengths.most) {
    rows.add("length", core::with_commas(lengths.most) + ", of every sample");
    return;
  }
  char mean[32];
  std::snprintf(mean, sizeof mean, "%.1f", lengths.mean);
  rows.add("lengths", "min " + core::with_commas(lengths.least) + ", median " + core::with_commas(lengths.median) +
                          ", mean " + mean + ", p90 " + core::with_commas(lengths.p90) + ", p99 " +
                          core::with_commas(lengths.p99) + ", max " + core::with_commas(lengths.most));
  const std::vector<double> bars(lengths.bins.begin(), lengths.bins.end());
  rows.add("", core::with_commas(lengths.least) + " " + review::bars_text(bars, terminal) + " " +
                   core::with_commas(lengths.most));
}

void add_padding(const engine::DataStats& stats, Rows& rows) {
  if (stats.padding.batches == 0) {
    if (stats.lengths.least == stats.lengths.most) rows.add("padding", "none");
    return;
  }
  rows.add("padding", padding_text(stats.padding) + " of " + std::to_string(stats.micro_batch_size));
  if (stats.grouped) rows.add("  by length", padding_text(*stats.grouped) + ", with loader.group_by_length: true");
  if (stats.packed) {
    rows.add("  packed",
             padding_text(*stats.packed) + ", with packing: true in rows of " + core::with_commas(stats.row_length));
  }
}

Node padding_node(const PaddingFigures& figures) {
  Node node = Node::mapping();
  node.set("batches", Node::integer(figures.batches));
  node.set("positions", Node::integer(figures.positions));
  node.set("padding", Node::integer(figures.padding));
  return node;
}

Node lengths_node(const engine::LengthFigures& lengths) {
  Node node = Node::mapping();
  node.set("min", Node::integer(lengths.least));
  node.set("median", Node::integer(lengths.median));
  node.set("mean", Node::floating(lengths.mean));
  node.set("p90", Node::integer(lengths.p90));
  node.set("p99", Node::integer(lengths.p99));
  node.set("max", Node::integer(lengths.most));
  Node histogram = Node::mapping();
  std::vector<Node> counts;
  for (const std::int64_t count : lengths.bins) counts.push_back(Node::integer(count));
  histogram.set("from", Node::integer(lengths.bins_from));
  histogram.set("width", Node::integer(lengths.bin_width));
  histogram.set("counts", Node::sequence(std::move(counts)));
  node.set("histogram", std::move(histogram));
  return node;
}

void add_classes(const engine::DataStats& stats, Rows& rows) {
  std::int64_t all = 0;
  for (const auto& [name, count] : stats.classes) all += count;
  const char* title = "classes";
  for (const auto& [name, count] : stats.classes) {
    rows.add(std::exchange(title, ""),
             core::escape_for_terminal(name) + ": " + core::with_commas(count) + ", " + percent(count, all));
  }
}

}  // namespace

std::string stats_text(const engine::DataStats& stats, const terminal::Terminal& terminal) {
  Rows rows;
  if (stats.records != stats.samples) rows.count("records", stats.records);
  rows.add("samples", core::with_commas(stats.samples) + (stats.is_part ? ", the first in the order of training" : ""));
  if (stats.cut > 0) rows.add("cut", core::with_commas(stats.cut) + ", longer than max_seq_len");
  if (stats.dropped > 0) rows.add("dropped", core::with_commas(stats.dropped) + ", longer than max_seq_len");
  if (stats.skipped > 0) {
    rows.add("skipped", core::with_commas(stats.skipped) + ": " + core::escape_for_terminal(stats.reasons));
  }
  if (!stats.fields.empty()) {
    rows.add("fields read", fields_text(stats.fields, true));
    rows.add("fields not read", fields_text(stats.fields, false));
  }
  if (stats.vocabulary > 0) {
    rows.count("tokens", stats.tokens);
    if (stats.target_tokens > 0 || stats.classes.empty()) {
      rows.add("target tokens", core::with_commas(stats.target_tokens) + ", " +
                                    percent(stats.target_tokens, stats.tokens) + " of the tokens");
    }
    add_classes(stats, rows);
    add_lengths(stats, terminal, rows);
    add_padding(stats, rows);
    rows.add("vocabulary",
             core::with_commas(stats.vocabulary_used) + " of " + core::with_commas(stats.vocabulary) + " ids are used");
    if (stats.longest_part) {
      rows.add("longest record", source_text(*stats.longest_part) + ": " +
                                     core::with_commas(stats.longest_part->length) + " tokens" +
                                     (stats.longest_part->cut ? ", cut" : "") +
                                     (stats.longest ? ", in sample " + std::to_string(*stats.longest) : ""));
    }
  }
  if (!stats.columns.empty()) rows.add("columns", core::escape_for_terminal(core::joined(stats.columns)));
  for (const auto& [name, shape] : stats.tensors) rows.add(name, shape);
  return "data." + stats.set + ": " + stats.type + ", " + core::escape_for_terminal(stats.description) + "\n" +
         rows.take();
}

std::string stats_json(const engine::DataStats& stats) {
  Node node = Node::mapping();
  node.set("set", Node::string(stats.set));
  node.set("type", Node::string(stats.type));
  for (const auto& [name, value] : {std::pair{"records", stats.records},
                                    {"samples", stats.samples},
                                    {"cut", stats.cut},
                                    {"dropped", stats.dropped},
                                    {"skipped", stats.skipped}}) {
    node.set(name, Node::integer(value));
  }
  node.set("skipped_reasons", Node::string(stats.reasons));
  if (stats.is_part) node.set("is_part", Node::boolean(true));
  if (!stats.fields.empty()) node.set("fields", fields_node(stats.fields));
  if (stats.vocabulary == 0) {
    Node tensors = Node::mapping();
    std::vector<Node> columns;
    for (const std::string& column : stats.columns) columns.push_back(Node::string(column));
    for (const auto& [name, shape] : stats.tensors) tensors.set(name, Node::string(shape));
    node.set("columns", Node::sequence(std::move(columns)));
    node.set("tensors", std::move(tensors));
    return core::to_json(node) + "\n";
  }
  node.set("tokens", Node::integer(stats.tokens));
  node.set("target_tokens", Node::integer(stats.target_tokens));
  if (!stats.classes.empty()) {
    Node classes = Node::mapping();
    for (const auto& [name, count] : stats.classes) classes.set(name, Node::integer(count));
    node.set("classes", std::move(classes));
  }
  node.set("lengths", lengths_node(stats.lengths));
  node.set("micro_batch_size", Node::integer(stats.micro_batch_size));
  node.set("padding", padding_node(stats.padding));
  if (stats.grouped) node.set("padding_grouped", padding_node(*stats.grouped));
  if (stats.packed) {
    node.set("padding_packed", padding_node(*stats.packed));
    node.set("row_length", Node::integer(stats.row_length));
  }
  node.set("vocabulary", Node::integer(stats.vocabulary));
  node.set("vocabulary_used", Node::integer(stats.vocabulary_used));
  if (stats.longest_part) {
    Node longest = Node::mapping();
    if (stats.longest) longest.set("sample", Node::integer(*stats.longest));
    longest.set("file", Node::string(stats.longest_part->file));
    longest.set(stats.longest_part->unit.empty() ? "number" : stats.longest_part->unit,
                Node::integer(stats.longest_part->number));
    longest.set("length", Node::integer(stats.longest_part->length));
    node.set("longest_record", std::move(longest));
  }
  return core::to_json(node) + "\n";
}

}  // namespace runner::cli
