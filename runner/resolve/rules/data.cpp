#include "runner/resolve/rules/rules.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/registry/wording.h"

namespace runner::resolve {

using core::Node;
using registry::enumerated;

namespace {

/// `:90%`, `10%:20%`, or all for nothing; nothing for what is no split.
std::optional<std::pair<double, double>> split_of(const SettledTree& tree, const std::string& set) {
  if (tree.was_refused(set + ".split")) return std::nullopt;
  const std::string text = tree.text(set + ".split").value_or(":");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto percent = [](std::string_view part, double otherwise) {
    double number = otherwise;
    std::from_chars(part.data(), part.data() + part.size(), number);
    return number;
  };
  const std::string_view whole = text;
  return std::pair(percent(whole.substr(0, colon), 0.0), percent(whole.substr(colon + 1), 100.0));
}

}  // namespace

std::vector<std::string> evaluated_sets(const SettledTree& tree) {
  std::vector<std::string> names;
  const Node* data = tree.value("data");
  if (data == nullptr) return names;
  for (const Node::Entry& entry : data->entries()) {
    if (entry.key != "train") names.push_back(entry.key);
  }
  return names;
}

void train_set(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr || !data->is_mapping() || data->find("train") != nullptr) return;
  std::vector<std::string> names;
  for (const Node::Entry& entry : data->entries()) names.push_back(entry.key);
  if (names.empty())
    return tree.error("data", "data needs a data set called train", "add train: {type: text, path: ...}");
  std::string near = core::closest("train", names);
  // People call it by other words, none of which is near.
  for (const char* word : {"training", "train_set", "train_data", "train_dataset"}) {
    if (near.empty() && std::find(names.begin(), names.end(), word) != names.end()) near = word;
  }
  tree.error("data", "data needs a data set called train, it has " + enumerated(names, "and", names.size()),
             near.empty() ? "train is the training set; all others are evaluated" : "rename " + near + " to train");
}

void data_set_names(SettledTree& tree) {
  const Node* data = tree.value("data");
  if (data == nullptr) return;
  for (const Node::Entry& entry : data->entries()) {
    const bool fits = !entry.key.empty() && std::all_of(entry.key.begin(), entry.key.end(), [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!fits)
      tree.error_at(entry.key_location,
                    "the name of a data set must be letters, digits, '_' and '-', got " + core::in_quotes(entry.key),
                    "metrics are called NAME/loss after it");
  }
}

/// Samples that are trained on say little about others.
void held_out(SettledTree& tree) {
  const Node* train = tree.value("data.train.path");
  if (train == nullptr) return;
  const auto same = [&tree](const std::string& set, const char* key) {
    const Node *first = tree.value("data.train." + std::string(key)), *second = tree.value(set + "." + key);
    return first == nullptr || second == nullptr ? first == second : first->same_value(*second);
  };
  for (const std::string& name : evaluated_sets(tree)) {
    const std::string set = "data." + name;
    if (!same(set, "path") || !same(set, "exclude") || !same(set, "type") || !same(set, "split_by")) continue;
    const auto trained = split_of(tree, "data.train"), evaluated = split_of(tree, set);
    if (!trained || !evaluated) continue;
    if (std::max(trained->first, evaluated->first) >= std::min(trained->second, evaluated->second)) continue;
    tree.warning(set, set + " evaluates samples of data.train: both read the same part of the same files",
                 "write split: \":90%\" in train and split: \"90%:\" in " + name);
  }
}

}  // namespace runner::resolve
