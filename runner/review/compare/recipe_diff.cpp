#include "runner/review/compare/recipe_diff.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runner/artifact/provenance/provenance.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"

namespace runner::review {
namespace {

using core::Node;
using store::RunSummary;
using Runs = std::vector<RunSummary>;
using Leaves = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t kCapsuleBytesMax = 64 << 20;

bool is_leaf(const Node& node) {
  if (node.is_mapping()) return node.entries().empty();
  if (!node.is_sequence()) return true;
  return std::none_of(node.items().begin(), node.items().end(), [](const Node& item) { return item.is_mapping(); });
}

void flatten(const Node& node, const std::string& path, Leaves& leaves) {
  if (is_leaf(node)) {
    const bool scalar = !node.is_mapping() && !node.is_sequence();
    leaves.emplace_back(path, node.is_null() ? "null" : scalar ? node.scalar_text() : core::to_json(node, -1));
    return;
  }
  for (const Node::Entry& entry : node.entries()) {
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, leaves);
  }
  for (std::size_t i = 0; i < node.items().size(); ++i) {
    flatten(node.items()[i], path + "[" + std::to_string(i) + "]", leaves);
  }
}

/// Rows in the order in which their keys come up.
class Rows {
 public:
  explicit Rows(std::size_t runs) : runs_(runs) {}

  DifferingRow& row(const std::string& key) {
    const auto [at, is_new] = at_.try_emplace(key, rows_.size());
    if (is_new) rows_.push_back({key, std::vector<std::optional<std::string>>(runs_)});
    return rows_[at->second];
  }

  std::vector<DifferingRow> differing() && {
    std::erase_if(rows_, [](const DifferingRow& row) {
      return std::all_of(row.values.begin(), row.values.end(),
                         [&](const auto& value) { return value == row.values[0]; });
    });
    return std::move(rows_);
  }

 private:
  std::size_t runs_;
  std::vector<DifferingRow> rows_;
  std::map<std::string, std::size_t> at_;
};

std::string provenance_path(const RunSummary& run) {
  return store::branch_file(run.run_dir, artifact::kProvenanceFile);
}

/// What the run's newest branch recorded. A resume reads no files of `init_from` again: the run began with those that
/// its first branch read.
std::optional<artifact::Provenance> provenance_of(const RunSummary& run) {
  auto newest = artifact::read_provenance(provenance_path(run));
  if (!newest) return std::nullopt;
  const auto is_begun_with = [](const artifact::DataFile& file) { return file.set == artifact::kInitFromSet; };
  auto& data = newest.value().data;
  if (run.branch > 0 && std::none_of(data.begin(), data.end(), is_begun_with)) {
    const auto first = artifact::read_provenance(run.run_dir + "/" + artifact::kProvenanceFile);
    if (first)
      std::copy_if(first.value().data.begin(), first.value().data.end(), std::back_inserter(data), is_begun_with);
  }
  return std::move(newest).value();
}

}  // namespace

Leaves flat_params(const Node& resolved) {
  Leaves leaves;
  flatten(resolved, "", leaves);
  std::erase_if(leaves, [](const auto& leaf) {
    return leaf.first.empty() || leaf.first == "run_name" || leaf.first == "output_dir";
  });
  return leaves;
}

std::vector<DifferingRow> differing_keys(const Runs& runs) {
  Rows rows(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (auto& [key, value] : flat_params(runs[i].resolved)) rows.row(key).values[i] = std::move(value);
  }
  return std::move(rows).differing();
}

std::vector<DifferingRow> differing_environment(const Runs& runs) {
  std::vector<std::optional<artifact::Provenance>> capsules;
  for (const RunSummary& run : runs) capsules.push_back(provenance_of(run));
  const auto first =
      std::find_if(capsules.begin(), capsules.end(), [](const auto& provenance) { return provenance.has_value(); });
  Rows rows(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (first == capsules.end() || !capsules[i]) continue;
    for (artifact::Cause& cause : artifact::list_causes(**first, *capsules[i])) {
      DifferingRow& row = rows.row(cause.what);
      // Those that are as the first one say nothing of their own here.
      for (std::size_t k = 0; k < runs.size(); ++k) {
        if (capsules[k] && !row.values[k]) row.values[k] = cause.before;
      }
      row.values[i] = std::move(cause.after);
    }
  }
  return std::move(rows).differing();
}

Node git_state_of(const RunSummary& run) {
  const auto text = core::read_file(provenance_path(run), kCapsuleBytesMax);
  if (!text) return {};
  const auto node = core::parse_json(text.value());
  const Node* code = node ? node.value().find("code") : nullptr;
  return code != nullptr && code->is_mapping() ? *code : Node();
}

}  // namespace runner::review
