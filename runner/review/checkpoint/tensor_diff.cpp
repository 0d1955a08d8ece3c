#include "runner/review/checkpoint/tensor_diff.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"

#include <cstdio>
#include <vector>

#include "runner/artifact/manifest.h"
#include "runner/core/node.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/review/checkpoint/checkpoints.h"

namespace runner::review {
namespace {

using artifact::Comparison;
using artifact::TensorDifference;
using artifact::ValueDifference;
using core::Node;
using Kind = TensorDifference::Kind;

std::string exact_text(double value) { return core::short_number(value, 9); }

std::string either(const std::string& a, const std::string& b) { return a.empty() ? b : a; }

std::string shapes_text(const TensorDifference& one) {
  if (one.kind == Kind::kOnlyInB) return artifact::shape_text(one.shape_b);
  if (one.kind != Kind::kShape) return artifact::shape_text(one.shape_a);
  return artifact::shape_text(one.shape_a) + " | " + artifact::shape_text(one.shape_b);
}

std::string types_text(const TensorDifference& one) {
  return one.kind == Kind::kDtype || (one.kind == Kind::kShape && one.dtype_a != one.dtype_b)
             ? one.dtype_a + " | " + one.dtype_b
             : either(one.dtype_a, one.dtype_b);
}

std::string first_text(const TensorDifference& one) {
  if (one.differing == 0) return "";
  return (one.first.empty() ? "" : artifact::shape_text(one.first) + " ") + exact_text(one.first_a) + " | " +
         exact_text(one.first_b);
}

std::vector<terminal::Cell> row_of(const TensorDifference& one) {
  std::vector<terminal::Cell> row = {
      {"  " + core::escape_for_terminal(one.name)}, {types_text(one)}, {shapes_text(one)}};
  switch (one.kind) {
    case Kind::kOnlyInA: row.push_back({"only in a", terminal::Paint::kYellow}); return row;
    case Kind::kOnlyInB: row.push_back({"only in b", terminal::Paint::kYellow}); return row;
    case Kind::kShape: row.push_back({"another shape", terminal::Paint::kYellow}); return row;
    default: break;
  }
  const bool none_measured = one.differing == one.without_distance;
  row.push_back({std::to_string(one.differing) + " of " + std::to_string(one.elements)});
  row.push_back({one.differing == 0 ? "0" : none_measured ? "nan" : terminal::number_text(one.max_abs)});
  row.push_back({one.differing == 0 ? "0" : none_measured ? "nan" : terminal::number_text(one.max_rel)});
  row.push_back({first_text(one)});
  return row;
}

std::string tensors_text(const Comparison& comparison, const DiffOptions& options, const terminal::Terminal& terminal) {
  std::string text, set;
  std::vector<std::vector<terminal::Cell>> rows;
  const auto flush = [&] {
    if (rows.empty()) return;
    if (!set.empty()) text += terminal::painted(set, terminal::Paint::kBold, terminal) + "\n";
    text += terminal::table_text({{"  tensor", false, true},
                                  {"type"},
                                  {"shape"},
                                  {"elements"},
                                  {"max abs", true},
                                  {"max rel", true},
                                  {"first: a | b"}},
                                 rows, terminal);
    rows.clear();
  };
  std::size_t shown = 0;
  for (const TensorDifference& one : comparison.tensors) {
    if (shown == options.rows_max) break;
    if (one.set != set) flush();
    set = one.set;
    rows.push_back(row_of(one));
    rows.back().resize(7);
    ++shown;
  }
  flush();
  if (shown < comparison.tensors.size()) {
    text += "  (" + std::to_string(comparison.tensors.size() - shown) + " more: --all shows them)\n";
  }
  return text;
}

std::string values_text(const Comparison& comparison, const DiffOptions& options, const terminal::Terminal& terminal) {
  std::vector<std::vector<terminal::Cell>> rows;
  std::size_t left_out = 0;
  for (const ValueDifference& one : comparison.values) {
    if (rows.size() == options.rows_max) {
      ++left_out;
      continue;
    }
    const auto shown = [](const std::string& value) {
      return value.empty() ? std::string("-") : core::escape_for_terminal(value);
    };
    rows.push_back({{"  " + core::escape_for_terminal(one.file + (one.path.empty() ? "" : ": " + one.path))},
                    {shown(one.a)},
                    {shown(one.b)},
                    {one.wall_clock ? "time, ignored" : "", terminal::Paint::kDim}});
  }
  if (rows.empty()) return "";
  std::string text =
      terminal::table_text({{"  value", false, true}, {"a", false, true}, {"b", false, true}, {""}}, rows, terminal);
  if (left_out > 0) text += "  (" + std::to_string(left_out) + " more: --all shows them)\n";
  return text;
}

std::size_t counted_values(const Comparison& comparison) {
  std::size_t count = 0;
  for (const ValueDifference& one : comparison.values) count += one.wall_clock ? 0 : 1;
  return count;
}

std::string verdict_text(const Comparison& comparison) {
  const std::string compared = std::to_string(comparison.tensors_compared) +
                               (comparison.tensors_compared == 1 ? " tensor" : " tensors") + " with " +
                               core::format_count(static_cast<double>(comparison.elements_compared)) + " elements";
  if (comparison.same()) return "the same: " + compared + "\n";
  const std::size_t values = counted_values(comparison);
  return "different: " + std::to_string(comparison.tensors.size()) +
         (comparison.tensors.size() == 1 ? " tensor and " : " tensors and ") + std::to_string(values) +
         (values == 1 ? " value" : " values") + "; compared " + compared + "\n";
}

/// Who wrote it and when, of a folder with a manifest: what a reader wants to know beside the numbers.
std::string about(const std::string& path) {
  const auto manifest = artifact::read_manifest(path);
  if (!manifest) return "";
  const artifact::ManifestFields& fields = manifest.value().fields;
  std::string text = "step " + std::to_string(fields.step) + ", branch " + std::to_string(fields.branch);
  if (!fields.run_id.empty()) text += ", run " + fields.run_id;
  return "  (" + core::escape_for_terminal(text) + ")";
}

Node list_of(const std::vector<std::int64_t>& values) {
  Node list = Node::sequence();
  for (const std::int64_t value : values) list.items().push_back(Node::integer(value));
  return list;
}

Node tensor_json(const TensorDifference& one) {
  static constexpr const char* kKinds[] = {"only_in_a", "only_in_b", "shape", "dtype", "values"};
  Node row = Node::mapping();
  if (!one.set.empty()) row.set("file", Node::string(one.set));
  row.set("tensor", Node::string(one.name));
  row.set("kind", Node::string(kKinds[static_cast<int>(one.kind)]));
  if (one.kind != Kind::kOnlyInB) {
    row.set("dtype_a", Node::string(one.dtype_a));
    row.set("shape_a", list_of(one.shape_a));
  }
  if (one.kind != Kind::kOnlyInA) {
    row.set("dtype_b", Node::string(one.dtype_b));
    row.set("shape_b", list_of(one.shape_b));
  }
  if (one.kind == Kind::kValues || one.kind == Kind::kDtype) {
    row.set("elements", Node::integer(one.elements));
    row.set("differing", Node::integer(one.differing));
    row.set("without_distance", Node::integer(one.without_distance));
    row.set("max_abs", Node::floating(one.max_abs));
    row.set("max_rel", Node::floating(one.max_rel));
  }
  if (one.differing > 0) {
    row.set("first_index", list_of(one.first));
    row.set("first_a", Node::floating(one.first_a));
    row.set("first_b", Node::floating(one.first_b));
  }
  return row;
}

}  // namespace

std::string diff_text(const Comparison& comparison, const DiffOptions& options, const terminal::Terminal& terminal) {
  return "a  " + core::escape_for_terminal(options.a) + about(options.a) + "\nb  " +
         core::escape_for_terminal(options.b) + about(options.b) + "\n" + tensors_text(comparison, options, terminal) +
         values_text(comparison, options, terminal) + verdict_text(comparison);
}

std::string diff_json(const Comparison& comparison, const DiffOptions& options) {
  Node node = Node::mapping();
  node.set("a", Node::string(options.a));
  node.set("b", Node::string(options.b));
  node.set("same", Node::boolean(comparison.same()));
  node.set("tensors_compared", Node::integer(comparison.tensors_compared));
  node.set("elements_compared", Node::integer(comparison.elements_compared));
  Node tensors = Node::sequence();
  for (const TensorDifference& one : comparison.tensors) tensors.items().push_back(tensor_json(one));
  node.set("tensors", std::move(tensors));
  Node values = Node::sequence();
  for (const ValueDifference& one : comparison.values) {
    Node row = Node::mapping();
    row.set("file", Node::string(one.file));
    row.set("place", Node::string(one.path));
    row.set("a", Node::string(one.a));
    row.set("b", Node::string(one.b));
    row.set("wall_clock", Node::boolean(one.wall_clock));
    values.items().push_back(std::move(row));
  }
  node.set("values", std::move(values));
  return core::to_json(node) + "\n";
}

}  // namespace runner::review
